"""What is promised of the page of settings."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="settings:reference",
        source="issue 4, Operations; style: documentation that cannot rot",
        sentence="The page of settings has every table and key that the program reads, in its order, with type, "
        "default, limits and a sentence.",
    ),
)
