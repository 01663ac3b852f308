"""Chat platforms: what comes in becomes facts, what is committed becomes messages. The channels only translate."""
