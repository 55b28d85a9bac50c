"""The session store: transcripts that outlive their process.

Every method is one operation of the database: one hop, one transaction, answered after the commit. Reads run beside
writes and see the last commit.
"""

from __future__ import annotations

from aip_hermes.embedded.session_db.methods.activity import ActivityMethods
from aip_hermes.embedded.session_db.methods.compression import CompressionMethods
from aip_hermes.embedded.session_db.methods.compression_notes import CompressionNoteMethods
from aip_hermes.embedded.session_db.methods.counting import CountMethods
from aip_hermes.embedded.session_db.methods.creating import CreateMethods
from aip_hermes.embedded.session_db.methods.ending import EndMethods
from aip_hermes.embedded.session_db.methods.erasing import EraseMethods
from aip_hermes.embedded.session_db.methods.leases import LeaseMethods
from aip_hermes.embedded.session_db.methods.lineage import LineageMethods
from aip_hermes.embedded.session_db.methods.listing import ListMethods
from aip_hermes.embedded.session_db.methods.looking import LookMethods
from aip_hermes.embedded.session_db.methods.portability import PortabilityMethods
from aip_hermes.embedded.session_db.methods.pruning import PruneMethods
from aip_hermes.embedded.session_db.methods.reading import ReadMethods
from aip_hermes.embedded.session_db.methods.resuming import ResumeMethods
from aip_hermes.embedded.session_db.methods.rewriting import RewriteMethods
from aip_hermes.embedded.session_db.methods.search import SearchMethods
from aip_hermes.embedded.session_db.methods.settings import SettingMethods
from aip_hermes.embedded.session_db.methods.titles import TitleMethods
from aip_hermes.embedded.session_db.methods.transcripts import TranscriptMethods
from aip_hermes.embedded.session_db.methods.turning import TurnMethods
from aip_hermes.embedded.session_db.methods.usage import UsageMethods
from aip_hermes.embedded.session_db.store_file import APPLICATION_ID, StoreFile

__all__ = ["APPLICATION_ID", "SessionDB"]


class SessionDB(
    CreateMethods,
    TranscriptMethods,
    RewriteMethods,
    EraseMethods,
    ReadMethods,
    LookMethods,
    PortabilityMethods,
    ResumeMethods,
    TitleMethods,
    EndMethods,
    ActivityMethods,
    SettingMethods,
    ListMethods,
    CountMethods,
    LineageMethods,
    LeaseMethods,
    TurnMethods,
    CompressionMethods,
    CompressionNoteMethods,
    PruneMethods,
    UsageMethods,
    SearchMethods,
    StoreFile,
):
    """A durable store of sessions; the constructor touches nothing, the first operation opens.

    dsn_or_path: the SQLite file, without one `$HERMES_HOME/state.db`; or a `postgresql://` address (extra `postgres`),
    where several processes share the store, each with connections of its own (`pool`) and in one event loop. read_only:
    nothing is made or migrated, every write fails with StoreUnavailable. clock, server_time: as `StoreFile`.

    max_resume_messages, max_export_messages: attributes, 20,000 each, 0 for no limit. actor: who works with this store,
    as the record of removals names them.

    Raises, from each operation: RuntimeError once closed; StoreUnavailable and StoreRefused of the database. Ids and
    texts may hold anything; lone surrogates are replaced by U+FFFD. Rows are dictionaries, times are Unix seconds.
    """
