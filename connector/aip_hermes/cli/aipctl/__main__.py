"""`python -m aip_hermes.cli.aipctl`."""

from aip_hermes.cli.aipctl.command import main

main()
