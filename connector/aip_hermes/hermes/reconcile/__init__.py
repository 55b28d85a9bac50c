"""What became of a request whose answer was lost: rules that read, and never change anything (design §5)."""

from aip_hermes.hermes.reconcile.quiet import QuietTimes
from aip_hermes.hermes.reconcile.reconciler import Reconciler

__all__ = ["QuietTimes", "Reconciler"]
