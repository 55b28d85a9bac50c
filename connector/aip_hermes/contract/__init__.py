"""The contract between callers, runtime and connector: rows, schemas, validators, published capabilities, manifest."""

from aip_hermes.contract.catalog import Catalog, CatalogPage, InvalidCatalogQuery, StaleCatalogCursor
from aip_hermes.contract.manifest import ServerCard
from aip_hermes.contract.operation import Operation
from aip_hermes.contract.publish import Published, publish
from aip_hermes.contract.rows import ContractFileError, load_capability_file, load_operations
from aip_hermes.contract.schemas import operation_schema
from aip_hermes.contract.validation import Validator

__all__ = [
    "Catalog",
    "CatalogPage",
    "ContractFileError",
    "InvalidCatalogQuery",
    "Operation",
    "Published",
    "ServerCard",
    "StaleCatalogCursor",
    "Validator",
    "load_capability_file",
    "load_operations",
    "operation_schema",
    "publish",
]
