"""The command lines: `aipctl` for a caller and a reviewer, `aip-hermes` for an operator."""
