"""The guide to fine-tuning for a field of knowledge."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

GUIDE: Mapping[str, str | Promise] = {
    "guide.data": _("How much data"),
    "guide.cleaning": _("Cleaning"),
    "guide.privacy": _("De-identification"),
    "guide.evaluation": _("Evaluation"),
    "guide.data.adapter": _(
        "Adapters (LoRA, QLoRA): from %(least)s good samples; beyond %(good)s more of the same adds little."
    ),
    "guide.data.full": _(
        "Full fine-tuning: from %(least)s samples, better %(good)s, mixed with general data so that nothing is forgotten."
    ),
    "guide.data.too_few": _(
        "%(samples)s samples teach a format or a tone, not a field: collect %(least)s, or put the knowledge into the prompt."
    ),
    "guide.data.too_few.full": _(
        "%(samples)s samples are too few to change all weights: below %(least)s take an adapter."
    ),
    "guide.data.epochs": _("%(epochs)s times through the same samples makes the model repeat them: %(most)s at most."),
    "guide.data.quality": _(
        "A hundred samples that an expert wrote are worth more than a thousand that were generated and never read."
    ),
    "guide.cleaning.duplicates": _("Remove duplicates and near-duplicates, also between training and evaluation."),
    "guide.cleaning.template": _(
        "Use the chat template of the base model, in training exactly as in serving; train on the answers only."
    ),
    "guide.cleaning.language": _("Filter by language, encoding and broken text."),
    "guide.cleaning.length": _(
        "Look at the longest one per cent: cut or drop them, they set the memory of the whole run."
    ),
    "guide.cleaning.contradictions": _(
        "Let an expert settle answers that contradict each other; note the date of what changes with time."
    ),
    "guide.cleaning.leak": _("Take out whatever a public benchmark contains."),
    "guide.cleaning.licence": _("Keep source and licence of each sample."),
    "guide.cleaning.sample_by_hand": _("Read 200 samples by hand before the first run."),
    "guide.privacy.names": _("Replace names, addresses, e-mail, telephone numbers."),
    "guide.privacy.numbers": _("Replace numbers of documents, accounts, patients, vehicles."),
    "guide.privacy.free_text": _(
        "Search free text too, with a recognizer and by hand: forms are clean, notes are not."
    ),
    "guide.privacy.consistent": _(
        "Use the same stand-in for the same person within a document, so that it still makes sense."
    ),
    "guide.privacy.secrets": _("Search for keys and passwords."),
    "guide.privacy.check": _("Try to get a real name out of the trained model before anybody else does."),
    "guide.privacy.basis": _("Write down on what legal basis each source is used."),
    "guide.evaluation.held_out": _(
        "Hold back %(count)s samples that the training never sees, by source or by time and not at random."
    ),
    "guide.evaluation.terminology": _("Terminology: a list of terms with their right use, scored as accuracy."),
    "guide.evaluation.reasoning": _("Reasoning: judge the chain of steps, not only the last line."),
    "guide.evaluation.refusal": _("Refusal: questions whose answer the model cannot know; it has to say so."),
    "guide.evaluation.general": _("General ability before and after, to see what was forgotten."),
    "guide.evaluation.baseline": _("The base model with a good prompt as the baseline: beat it, or don't train."),
    "guide.evaluation.people": _("Blind comparison by people of the field for the last decision."),
    "guide.evaluation.quantized": _("All of it once more with the quantized weights that will be served."),
}
