//! The tool that is called: an effect, and nothing else of note.

use std::{sync::OnceLock, time::Duration};

use action_group::tool::{Definition, Effect, Route, Scope, Wording};

/// `Effect` with a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectOf {
    Once,
    Keyed,
    Atomic,
}

impl EffectOf {
    pub const fn effect(self) -> Effect {
        match self {
            Self::Once => Effect::Once,
            Self::Keyed => Effect::Keyed,
            Self::Atomic => Effect::Atomic,
        }
    }

    pub(super) fn definition(self) -> &'static Definition {
        static ALL: OnceLock<[Definition; 3]> = OnceLock::new();
        let all = ALL.get_or_init(|| [Effect::Once, Effect::Keyed, Effect::Atomic].map(definition));
        &all[self as usize]
    }
}

pub fn definition(effect: Effect) -> Definition {
    Definition {
        name: "tool",
        description: String::new(),
        schema: serde_json::Value::Null,
        effect,
        may_need_approval: false,
        timeout: Duration::from_secs(1),
        window: Duration::from_mins(1),
        key_version: 1,
        scope: Scope::Deployment,
        route: Route::post("/tool"),
        wording: Wording::default(),
    }
}
