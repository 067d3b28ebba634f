"""Complete lists of the objects below a prefix, page by page."""

from collections.abc import Iterator

from seqflow.files.again import again
from seqflow.files.clients import PAGE, Client, Found
from seqflow.files.errors import Place, WholeFileError, is_below_file


def list_all(place: Place, client: Client, prefix: str, seconds: float, after: str = "") -> list[Found]:
    """Return all objects from the key after `after` on; a page that fails is asked for again, for so many seconds.

    The client takes a web page that comes instead of a page of the list for an empty one, and that for the last. So
    the end of a long list is believed if another answer, which has the last object, shows it too; and an empty list
    if it comes twice.
    """
    found: list[Found] = []
    pages: Iterator[list[Found]] | None = None

    def next_page() -> list[Found]:
        nonlocal pages
        try:
            pages = client.list(prefix, found[-1].key if found else after) if pages is None else pages
            return next(pages, [])
        except BaseException as error:
            pages = None
            if is_below_file(error):
                return []
            raise

    def rest() -> list[Found]:
        last = [one for page in client.list(prefix, found[-2].key) for one in page]
        if found[-1].key not in {one.key for one in last}:
            raise WholeFileError
        known = {one.key for one in found}
        return [one for one in last if one.key not in known]

    for _ in range(2):
        while page := again(place, next_page, seconds):
            found += page
        if found:
            break
        pages = None
    while len(found) >= PAGE and (more := again(place, rest, seconds)):
        found += more
    return found
