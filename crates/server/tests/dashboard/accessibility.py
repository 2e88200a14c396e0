"""axe-core looks at every view, in both themes, wide and on a phone."""

from pathlib import Path

from browser import tab

AXE = Path(__file__).parents[4] / "target/needs/node/node_modules/axe-core/axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

VIEWS = {
    "/overview": ".lock", "/tasks": ".card", "/tasks?as=list": ".task-row", "/tasks?q=nothing": "#view-tasks .empty",
    "/timeline": "#view-timeline .span", "/workers": "#view-workers .worker", "/events": "#view-events .event", "/rates": "#view-rates figure",
    "/task/store": "#view-task .graph", "/lock/deploy": "#view-lock .hold", "/worker/alice": "#view-worker .plain-list li",
}


def look(page, where):
    found = page.evaluate("tags => axe.run(document, { runOnly: tags })", TAGS)["violations"]
    said = [f"{where}: {one['id']}: {one['help']}: {[node['target'] for node in one['nodes']][:3]} "
            f"{one['nodes'][0]['failureSummary']}" for one in found]
    assert not said, "\n".join(said)


def axe_finds_nothing(url, control):
    assert AXE.exists(), f"{AXE} is missing: run scripts/test"
    control.guard(by="alice", resource="deploy", operation="release 1.4")
    control.wait(by="bob", resource="deploy")
    control.lease(by="late", resource="database", ttl_ms=1_000)
    for label in ("one", "two"):
        control.lease(by=label, resource="gpu", mode="slot:2", ttl_ms=600_000)
    control.add(tasks=[
        {"id": "schema", "title": "Draw up the schema", "section": "backend"},
        {"id": "store", "title": "Write the store", "section": "backend", "depends_on": ["schema"], "labels": ["rust"]},
        *[{"id": status, "title": f"Is {status}", "status": status, "error": "no disk"} for status in
          ("review", "completed", "failed", "blocked", "cancelled", "skipped")],
    ])
    control.claim(by="alice", task="schema")
    for scheme, viewport in (("light", (1440, 900)), ("dark", (1440, 900)), ("light", (390, 844))):
        size = {"width": viewport[0], "height": viewport[1]}
        with tab(url, color_scheme=scheme, viewport=size) as opened:
            page = opened.open()
            page.locator(".lock[data-stale]").wait_for()
            page.evaluate(AXE.read_text())
            for view, sign in VIEWS.items():
                page.evaluate("hash => { location.hash = hash; }", f"#{view}")
                page.locator(sign).first.wait_for()
                look(page, f"{view}, {scheme}, {viewport[0]} pixels wide")
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, f"{view} is {wide} pixels too wide"
            page.goto(f"{url}/#/task/schema")
            page.get_by_role("button", name="Edit").click()
            look(page, f"the form, {scheme}")
            page.keyboard.press("Escape")
            page.keyboard.press("?")
            page.get_by_role("dialog").wait_for()
            look(page, f"the keys, {scheme}")
            opened.assert_quiet()
    control.gate(role="read", token="right")
    with tab(url, color_scheme="dark") as opened:
        opened.page.goto(url)
        opened.page.get_by_label("Token").wait_for()
        opened.page.evaluate(AXE.read_text())
        look(opened.page, "signing in")
