"""What is promised where a store is in a folder that machines share."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="database:mount:known",
        source="field report F034",
        sentence="A folder on NFS, SMB, 9p, virtiofs or the like is told by the mounts of the process, its deepest "
        "mount alone.",
    ),
    Promise(
        id="database:mount:no-shared-memory",
        source="field report F034",
        sentence="There a store, a new one or one with a write-ahead log, keeps a rollback journal, does all its work "
        "and says so once, with the type of the file system.",
    ),
    Promise(
        id="doctor:mount",
        source="field report F034",
        sentence="The doctor says that a data folder is on a file system which machines share, and what to do.",
    ),
)
