"""How every form is drawn: `{{ form.name.as_field_group }}` gives label, control, hint and error in the product's look."""

from __future__ import annotations

from typing import Any

from django.forms import BoundField, CheckboxInput, RadioSelect, Widget
from django.forms.renderers import TemplatesSetting


class Field(BoundField):
    def build_widget_attrs(self, attrs: dict[str, Any], widget: Widget | None = None) -> dict[str, Any]:
        attrs = super().build_widget_attrs(attrs, widget)
        if not isinstance(widget or self.field.widget, CheckboxInput | RadioSelect):
            attrs.setdefault("class", "input err" if self.errors else "input")
        return attrs

    @property
    def is_checkbox(self) -> bool:
        return isinstance(self.field.widget, CheckboxInput)


class Renderer(TemplatesSetting):
    form_template_name = "components/form.html"
    field_template_name = "components/field.html"
    bound_field_class = Field
