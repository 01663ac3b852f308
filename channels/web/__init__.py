"""The web room as a channel: what it shows of a card, what it takes at most, the streams that it feeds."""
