"""`aip-hermes conformance`: the connector kit, played on the real connector and runtime before a double of Hermes.

The scenarios are here and not among the tests, so that the installed command plays what the suite plays.
"""
