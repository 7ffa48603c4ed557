"""Every rule, in the order of its code: one explicit table."""

from __future__ import annotations

from infx.lint.rule import Rule
from infx.lint.rules import capacity, curve, draft, flags, golden, image, offload, policy

RULES: tuple[type[Rule], ...] = (
    image.UpstreamImage, image.Placeholder, image.ImageUnknown, image.EnginePatch,
    draft.DraftPrecision, draft.BannedSetting, draft.CompressedMessages, draft.UndeclaredOnDraft,
    draft.DraftSubstituted,
    golden.RealAcceptance, golden.AssumedCurve, golden.ForcedAcceptance,
    policy.ArchitectureChanged, policy.ChatTemplate, policy.DistortedMeasurement, policy.Deprecated,
    policy.UpstreamRecipe, policy.Secret,
    capacity.CapBelowConcurrency, capacity.CapMayBind, capacity.ContextTooLong, capacity.DoesNotFit,
    capacity.KvTooSmall, capacity.HostMemory, capacity.TpDoesNotDivide, capacity.MoreGpusThanNode,
    capacity.NotCaptured, capacity.OffloadWithoutBudget, capacity.KnownFailure, capacity.FeatureRefused,
    capacity.FeatureOff, capacity.BudgetBelowSequences,
    flags.UnknownEnv, flags.UnknownFlag, flags.WrongType, flags.NotAChoice, flags.RepeatsDefault, flags.OtherVendor,
    flags.EagerConflict,
    curve.FewPoints, curve.FallsThrough,
    offload.OffloadCannotBe,
    flags.CaptureContradicts, image.UpstreamBeside,
)  # fmt: skip
