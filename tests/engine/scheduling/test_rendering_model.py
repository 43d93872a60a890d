"""When pages are rendered: if it yields text at its price, and almost never otherwise."""

from tests.engine.memory_web import memory_book

from vedette.engine.messages import Content, FetchSuccess, FetchTask, Rendering
from vedette.engine.scheduling.rendering_model import RenderingModel
from vedette.model import Site
from vedette.parse.change.comparison import StoredVersion

SITE = Site("https://a.test/")
EMPTY = Content(StoredVersion(b"", b"", b"", b"", 0, b""), objections=(("script", ""),))


def fetched(path: str, rendering: Rendering | None = None) -> FetchSuccess:
    """Return a fetched page that looked empty, rendered or not."""
    task = FetchTask(1, "a.test", f"https://a.test{path}", "page")
    return FetchSuccess(task, 200, 0.0, 1.0, (), "page", content=EMPTY, rendering=rendering)


def test_useless_renderings_become_rare_but_never_stop() -> None:
    """Of many pages that a script doesn't fill, only about the square root of twice their number is rendered."""
    model, rendered = RenderingModel(), 0
    for number in range(1_000):
        mode, why = model.select_mode(f"https://a.test/app/{number}", SITE)
        assert bool(why) == (mode == "never")
        rendered += mode == "auto"
        model.on_results([fetched(f"/app/{number}", Rendering(1.0, 1) if mode == "auto" else None)])
    assert 30 <= rendered <= 60


def test_one_page_with_text_among_a_few_keeps_its_pattern_rendered() -> None:
    """A pattern that partly needs the browser is rendered, whatever other patterns of its host yield."""
    model = RenderingModel()
    for number in range(40):
        model.on_results([fetched(f"/app/{number}", Rendering(1.0, 1, new_words=50 * (number % 4 == 0)))])
        model.on_results([fetched(f"/tracker/x/{number}", Rendering(1.0, 1))])
    assert model.select_mode("https://a.test/app/99", SITE)[0] == "auto"
    assert model.select_mode("https://a.test/tracker/x/99", SITE)[0] == "never"


def test_a_rendering_must_be_worth_its_price() -> None:
    """The same page is rendered at a low price but not at a high one; more seconds raise its cost."""
    model = RenderingModel()
    model.on_results([fetched(f"/app/{number}", Rendering(2.0, 1, new_words=50)) for number in range(8)])
    assert model.choose("https://a.test/app/9", "auto", worth=1.0, price=0.01).render
    dear = model.choose("https://a.test/app/9", "auto", worth=1.0, price=10.0)
    assert not dear.render
    assert "below the price of 10" in dear.reason
    model.on_results([fetched(f"/app/{number}", Rendering(20.0, 9, new_words=50)) for number in range(8)])
    assert model.choose("https://a.test/app/9", "auto").cost > dear.cost


def test_the_setting_of_the_operator_overrides_what_was_learned() -> None:
    """``always`` and ``never`` always apply, and what was learned survives a restart."""
    book = memory_book()
    model = RenderingModel(book)
    model.on_results([fetched("/app/1", Rendering(1.0, 1))] * 5)
    model.save()
    again = RenderingModel(book)
    assert again.select_mode("https://a.test/app/2", SITE)[0] == "never"
    assert again.select_mode("https://a.test/app/2", Site("https://a.test/", render="always")) == ("always", "")
    assert again.choose("https://a.test/app/2", "never").reason == "its site has render=never"
