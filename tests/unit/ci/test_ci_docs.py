"""docs/ci.md and the templates say what the code says: labels, codes, boxes, workflows."""

from __future__ import annotations

from pathlib import Path

from infx.ci.checklist import read_checklist
from infx.ci.labels import PLAN_LABELS
from infx.ci.reuse import CLEARED

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/ci.md").read_text()


def test_every_label_code_box_and_workflow_is_on_the_page():
    assert [label for label in PLAN_LABELS if f"`{label}`" not in PAGE] == []
    assert [code for code, clear in CLEARED.items() if f"| `{code}` | {clear} |" not in PAGE] == []
    boxes = [item.key for item in read_checklist((ROOT / "docs/PR_REVIEW_CHECKLIST.md").read_text()).items]
    assert [key for key in boxes[:7] if f"\n| {key} |" not in PAGE] == []
    names = [path.name for path in (ROOT / ".github/workflows").glob("*.yml")]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_both_templates_ask_the_same():
    english = (ROOT / ".github/pull_request_template.md").read_text()
    chinese = (ROOT / ".github/PULL_REQUEST_TEMPLATE/zh.md").read_text()
    assert english.count("- [ ]") == chinese.count("- [ ]") == 9
    for word in ("infx validate", "infx changelog check --base origin/main", "infx changelog draft", "infx ci plan",
                 "`expect:`", "docs/waiver/<"):
        assert word in english and word in chinese
