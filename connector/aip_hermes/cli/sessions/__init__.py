"""`aip-hermes sessions`: for people who look after the transcripts of an embedded Hermes."""
