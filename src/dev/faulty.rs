//! A tool that misbehaves as `--fault` asks for, whatever the tool is, and whose calls are counted.

use std::{future::pending, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::faults::{Backstage, Kind, Moment};
use crate::tool::{AnyTool, CallContext, Definition, Effect, Plan, Reconciled, Success, ToolError};

type Attempt = BoxFuture<'static, Result<Success<Value>, ToolError>>;

/// The tool, with the faults that are to come in front of it.
pub struct Faulty {
    tool: Arc<dyn AnyTool>,
    backstage: Arc<Backstage>,
}

impl Faulty {
    pub fn new(tool: Arc<dyn AnyTool>, backstage: Arc<Backstage>) -> Self {
        Self { tool, backstage }
    }
}

impl AnyTool for Faulty {
    fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    fn plan(&self, arguments: &Value) -> Result<Plan, String> {
        self.tool.plan(arguments)
    }

    fn call(&self, arguments: Value, context: CallContext) -> Attempt {
        let tool = self.definition().name;
        // An atomic effect is made by the commit, after this call; `commits` sees it, counts it and misbehaves then.
        let makes_the_effect = self.definition().effect != Effect::Atomic;
        let fault = self.backstage.take(tool, |moment| makes_the_effect || moment != Moment::AfterEffect);
        if makes_the_effect || fault.is_some_and(|kind| kind.moment() == Moment::BeforeEffect) {
            self.backstage.count(tool);
        }
        let attempt = self.tool.call(arguments, context);
        match fault {
            None => attempt,
            Some(kind) => Box::pin(misbehave(kind, attempt)),
        }
    }

    fn reconcile(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Reconciled<Value>, ToolError>> {
        self.tool.reconcile(arguments, context)
    }
}

async fn misbehave(kind: Kind, attempt: Attempt) -> Result<Success<Value>, ToolError> {
    match kind {
        Kind::Throttle => Err(ToolError::transient("The backend is too busy for now.")),
        Kind::RetryAfter(wait) => Err(ToolError::transient("The backend is too busy for now.").retry_after(wait)),
        Kind::Unavailable => Err(ToolError::transient("The backend is not available for now.")),
        Kind::Reset => Err(ToolError::transient("The backend cannot be reached for now.")),
        Kind::Hang => pending().await,
        Kind::HangAfterEffect => {
            let _ = attempt.await;
            pending().await
        }
        Kind::KillAfterEffect => {
            let _ = attempt.await;
            killed()
        }
        Kind::Panic => panic!("the demo backend panics, because --fault asked for it"),
        Kind::Leak => Err(ToolError::internal(
            "cannot connect to postgres://orders:SECRET-1@db.internal:5432/orders?token=SECRET-2 (x-api-key: SECRET-3)",
        )),
        Kind::Huge => {
            let Success { writes, .. } = attempt.await?;
            Ok(Success::with_writes(json!({"padding": "x".repeat(2_000_000)}), writes))
        }
    }
}

/// Ends the process as the kernel does it to one that uses too much memory: no destructor, no last word.
pub fn killed() -> ! {
    std::process::exit(137)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering::SeqCst},
        time::Duration,
    };

    use futures_util::FutureExt;

    use super::*;
    use crate::tool::{Phase, ToolErrorKind};

    /// A tool that counts its effects.
    struct Counting {
        definition: Definition,
        effects: Arc<AtomicU32>,
    }

    impl AnyTool for Counting {
        fn definition(&self) -> &Definition {
            &self.definition
        }

        fn plan(&self, arguments: &Value) -> Result<Plan, String> {
            Ok(Plan { key: arguments.clone(), needs_approval: false })
        }

        fn call(&self, _: Value, _: CallContext) -> Attempt {
            let effects = Arc::clone(&self.effects);
            Box::pin(async move {
                effects.fetch_add(1, SeqCst);
                Ok(json!("done").into())
            })
        }

        fn reconcile(&self, _: Value, _: CallContext) -> BoxFuture<'static, Result<Reconciled<Value>, ToolError>> {
            Box::pin(std::future::ready(Ok(Reconciled::Unknown)))
        }
    }

    struct Stage {
        tool: Faulty,
        backstage: Arc<Backstage>,
        effects: Arc<AtomicU32>,
    }

    fn stage(effect: Effect, fault: &str) -> Stage {
        let definition = Definition::sample("tool", effect);
        let effects = Arc::new(AtomicU32::new(0));
        let fault = format!("tool={fault}").parse().expect("a fault");
        let backstage = Arc::new(Backstage::new(["tool"], vec![fault]).expect("a known tool"));
        let tool =
            Faulty::new(Arc::new(Counting { definition, effects: Arc::clone(&effects) }), Arc::clone(&backstage));
        Stage { tool, backstage, effects }
    }

    impl Stage {
        /// The end of one attempt; `None` if it hangs.
        fn attempt(&self) -> Option<Result<Success<Value>, ToolError>> {
            self.tool.call(json!({}), CallContext::first(None, Duration::ZERO)).now_or_never()
        }

        fn calls_and_effects(&self) -> (u64, u32) {
            (self.backstage.calls()["tool"], self.effects.load(SeqCst))
        }
    }

    #[test]
    fn a_fault_before_the_effect_makes_none_and_is_counted_as_a_call_whatever_the_tool() {
        for effect in [Effect::ReadOnly, Effect::Keyed, Effect::Atomic, Effect::Once] {
            for fault in ["throttle", "unavailable", "reset", "retry-after:7"] {
                let stage = stage(effect, fault);
                let error = stage.attempt().expect("an answer").expect_err(fault);
                assert_eq!((error.kind(), error.phase()), (ToolErrorKind::Transient, Phase::NothingSent), "{fault}");
                assert_eq!(error.retry_after, (fault == "retry-after:7").then_some(Duration::from_secs(7)));
                assert_eq!(stage.calls_and_effects(), (1, 0), "{fault}");
            }
            let hanging = stage(effect, "hang");
            assert!(hanging.attempt().is_none());
            assert_eq!(hanging.calls_and_effects(), (1, 0));
        }
    }

    #[test]
    fn a_hang_after_the_effect_makes_the_effect() {
        let stage = stage(Effect::Once, "hang-after-effect*1");
        assert!(stage.attempt().is_none());
        assert_eq!(stage.calls_and_effects(), (1, 1));
        assert!(stage.attempt().expect("an answer").is_ok(), "the fault is used up");
    }

    #[test]
    fn an_atomic_tool_is_left_to_its_commit() {
        let stage = stage(Effect::Atomic, "hang-after-effect");
        assert!(stage.attempt().expect("an answer").is_ok());
        assert_eq!(stage.calls_and_effects(), (0, 1), "the commit counts, not the preparation");
        assert!(stage.backstage.take("tool", |moment| moment == Moment::AfterEffect).is_some());
    }

    #[test]
    fn a_leak_holds_its_secrets_in_the_source_only() {
        let error = stage(Effect::ReadOnly, "leak").attempt().expect("an answer").expect_err("a leak");
        let source = error.cause().expect("a source").to_string();
        assert!(["SECRET-1", "SECRET-2", "SECRET-3", "db.internal"].iter().all(|secret| source.contains(secret)));
        assert_eq!((error.kind(), error.text.as_str()), (ToolErrorKind::Internal, ""));
    }

    #[test]
    fn a_huge_result_has_two_megabytes_and_its_effect() {
        let stage = stage(Effect::Keyed, "huge");
        let success = stage.attempt().expect("an answer").expect("a result");
        assert!(success.result.to_string().len() >= 2_000_000);
        assert_eq!(stage.calls_and_effects(), (1, 1));
    }

    #[test]
    #[should_panic(expected = "--fault")]
    fn a_panic_is_a_panic() {
        let _ = stage(Effect::ReadOnly, "panic").attempt();
    }
}
