"""Addresses, Back and Forward, filters, and the timeline's zoom."""

import json

from browser import tab

SOME = [
    {"id": "one", "title": "First", "section": "backend", "labels": ["rust"]},
    {"id": "two", "title": "Second", "section": "backend", "status": "failed", "error": "no disk"},
    {"id": "three", "title": "Third", "section": "docs", "labels": ["rust"], "status": "review"},
]


def cards(page, *ids):
    """Waits until exactly these cards are shown."""
    page.wait_for_function(
        "wanted => JSON.stringify([...document.querySelectorAll('#view-tasks .card')]"
        ".filter(card => card.checkVisibility()).map(card => card.dataset.id).sort()) === wanted",
        arg=json.dumps(sorted(ids), separators=(",", ":")),
    )


def address(page):
    return page.evaluate("location.hash")


def every_address_opens_the_same_and_back_works(url, control):
    control.gate(role="read", token="right")
    control.guard(by="alice", resource="deploy", operation="release 1.4")
    control.add(tasks=SOME)
    with tab(url) as opened:
        page = opened.page
        # A copied address, opened by a user who has to sign in first.
        page.goto(f"{url}/#/task/two")
        page.get_by_label("Token").fill("right")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Second").wait_for()
        page.get_by_role("link", name="Tasks").click()
        cards(page, "one", "two", "three")
        page.get_by_role("combobox", name="Status").select_option("failed")
        cards(page, "two")
        assert address(page) == "#/tasks?status=failed"
        page.get_by_role("link", name="Second").click()
        page.get_by_role("heading", name="Second").wait_for()
        page.go_back()
        cards(page, "two")
        page.go_back()
        cards(page, "one", "two", "three")
        page.go_forward()
        cards(page, "two")
        assert page.get_by_role("combobox", name="Status").input_value() == "failed"
        page.reload()
        cards(page, "two")
        # From a lock to its page, to its holder, and back.
        page.keyboard.press("1")
        page.locator(".lock").get_by_role("link", name="deploy").click()
        page.get_by_role("heading", name="deploy").wait_for()
        assert address(page) == "#/lock/deploy"
        page.locator("#view-lock .hold").get_by_role("link", name="alice").click()
        page.get_by_role("heading", name="alice").wait_for()
        assert address(page) == "#/worker/alice"
        page.locator("#view-worker .plain-list").get_by_role("link", name="deploy").wait_for()
        page.go_back()
        page.get_by_role("heading", name="deploy").wait_for()
        # A page shows nothing of the lock before it, also while the answer is on its way.
        page.locator("#view-lock .hold").wait_for()
        page.route("**/v1/locks/show?resource=other", lambda route: None)
        page.evaluate("location.hash = '#/lock/other'")
        page.get_by_role("heading", name="other").wait_for()
        assert page.locator("#view-lock .hold").count() == 0
        page.go_back()
        page.get_by_role("heading", name="deploy").wait_for()
        page.locator("#view-lock .hold").wait_for()
        page.unroute("**/v1/locks/show?resource=other")
        # Addresses of older versions, and nonsense.
        for old, new in (("#events", "#/events"), ("#/nonsense/x", "#/overview"), ("#/task/%E0%A4%A", "#/task/%25E0%25A4%25A")):
            page.goto(f"{url}/{old}")
            page.wait_for_function("wanted => location.hash === wanted", arg=new)
        page.get_by_text("No such task").wait_for()
        opened.assert_quiet(but=["401", "404", "400"])


def filters_find_and_say_when_nothing_matches(url, control):
    control.add(tasks=SOME)
    control.claim(by="alice", task="one")
    with tab(url) as opened:
        page = opened.open("/tasks")
        cards(page, "one", "two", "three")
        # How long a task has been in progress is on its card.
        page.locator('[data-id="one"] .elapsed').get_by_text("s").wait_for()
        assert "Taken" in page.locator('[data-id="one"] .elapsed').get_attribute("title")
        page.get_by_role("combobox", name="Label").fill("rust")
        page.keyboard.press("Enter")
        cards(page, "one", "three")
        page.get_by_role("combobox", name="Worker").fill("alice")
        page.keyboard.press("Enter")
        cards(page, "one")
        page.get_by_role("button", name="Clear filters").click()
        cards(page, "one", "two", "three")
        page.get_by_role("link", name="docs").click()
        cards(page, "three")
        page.get_by_role("link", name="All sections").click()
        page.get_by_role("combobox", name="Age").select_option("over-1h")
        page.get_by_text("Nothing matches").wait_for()
        page.get_by_role("combobox", name="Age").select_option("under-1h")
        cards(page, "one", "two", "three")
        # A task that arrives is judged by the same conditions.
        page.get_by_role("combobox", name="Status").select_option("pending")
        page.get_by_text("Nothing matches").wait_for()
        control.add(tasks=[{"id": "four", "title": "Fourth"}])
        cards(page, "four")
        page.keyboard.press("/")
        page.keyboard.type("no such text")
        page.get_by_text("Nothing matches").wait_for()
        assert address(page).endswith("q=no+such+text"), address(page)
        page.keyboard.press("Escape")
        cards(page, "four")
        for view in ("workers", "events"):
            page.goto(f"{url}/#/{view}?q=no+such+text")
            page.locator(f"#view-{view}").get_by_text("Nothing matches").wait_for()
        page.keyboard.press("?")
        page.get_by_role("dialog", name="Keys").wait_for()
        opened.assert_quiet()


def the_timeline_zooms_and_moves(url, control):
    control.guard(by="alice", resource="deploy")
    with tab(url) as opened:
        page = opened.open("/timeline")
        page.locator("#view-timeline .span").wait_for()
        page.keyboard.press("-")
        page.wait_for_function("() => location.hash === '#/timeline?span=600'")
        page.keyboard.press("+")
        page.wait_for_function("() => location.hash === '#/timeline'")
        # Half a span back, the hold that has just begun is out of sight.
        page.get_by_role("button", name="Earlier").click()
        page.wait_for_function("() => location.hash.includes('end=')")
        page.locator("#view-timeline").get_by_text("No holds").wait_for()
        page.reload()
        page.locator("#view-timeline").get_by_text("No holds").wait_for()
        page.keyboard.press("0")
        bar = page.locator("#view-timeline .span")
        bar.wait_for()
        box = page.locator("#view-timeline svg").bounding_box()
        page.mouse.move(box["x"] + 350, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 1250, box["y"] + 40, steps=4)
        page.wait_for_function("() => location.hash.includes('end=')")
        page.locator("#view-timeline").get_by_text("No holds").wait_for()
        # What was dragged out of sight can be dragged back, until the button is let go.
        page.mouse.move(box["x"] + 350, box["y"] + 40, steps=4)
        bar.wait_for()
        page.mouse.move(box["x"] + 1250, box["y"] + 40, steps=4)
        page.mouse.up()
        page.locator("#view-timeline").get_by_text("No holds").wait_for()
        page.mouse.move(box["x"] + 350, box["y"] + 40, steps=4)
        assert "end=" in address(page), address(page)
        page.get_by_role("button", name="Back to now").click()
        page.wait_for_function("() => location.hash === '#/timeline'")
        bar.wait_for()
        opened.assert_quiet()
