"""The charts of rates."""

from browser import tab


def rates_are_drawn_over_an_hour_and_a_day(url, control):
    control.add(tasks=[{"id": f"t{n}", "title": f"Task {n}", "section": "backend"} for n in range(3)])
    for n in range(3):
        control.claim(by="alice", task=f"t{n}")
        control.finish(by="alice", task=f"t{n}", how="complete" if n else "no disk")
    with tab(url) as opened:
        page = opened.open("/rates")
        view = page.locator("#view-rates")
        row = view.locator("tbody tr", has_text="backend")
        row.wait_for()
        # The server follows events on its own, so the first figures may miss the newest.
        page.wait_for_function(
            "() => [...document.querySelectorAll('#view-rates tbody td')].slice(0, 2).map(cell => cell.textContent).join() === '2,1'")
        view.get_by_role("img", name="Tasks per minute").wait_for()
        assert view.locator(".bar-good").count() >= 1 and view.locator(".bar-bad").count() >= 1
        assert view.locator("figure").count() == 5
        view.get_by_role("button", name="a day").click()
        page.wait_for_function("() => location.hash === '#/rates?window=day'")
        row.get_by_role("link", name="backend").click()
        view.get_by_text("of section backend").wait_for()
        page.go_back()
        view.get_by_text("of everything").wait_for()
        opened.assert_quiet()
