"""`aip-hermes demo`: the whole idea in ten seconds, between real processes."""
