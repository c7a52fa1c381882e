//! One request to the model: asked, given up at the end of the process, counted, and told in a metric line.

use tokio::time::timeout;

use super::{
    super::{
        metrics::RequestLine,
        model::{ModelFailure, ModelFailureKind, ModelReply, ModelRequest},
        run::AgentRun,
    },
    Driver, Happening, Heard, Then,
};

impl Driver<'_> {
    /// Asks the model and gives the run what comes of it, with a metric line about both.
    pub(super) async fn take_step(
        &self,
        run: &mut AgentRun,
        request: &ModelRequest,
        id: &str,
        watch: &mut (dyn FnMut(Happening<'_>) + Send),
    ) -> Then {
        let (told, estimated) = run.taken();
        let mut line = RequestLine::begin(self.pipeline.telemetry(), &self.origin, id);
        let (asked, heard) = self.ask_model(request, &mut line, watch).await;
        let then = match asked {
            Asked::Replied(reply) => {
                line.answered();
                run.model_replied(reply);
                Then::Save
            }
            // What follows has cost nothing but tokens, which the next save tells.
            Asked::Failed(failure) => {
                line.failed(failure.kind);
                watch(Happening::ModelFailed(&failure));
                run.model_failed(failure);
                run.heard_in_vain(heard);
                Then::Ask
            }
            Asked::Ending => {
                run.model_given_up();
                run.heard_in_vain(heard);
                Then::Ask
            }
        };
        let (told_now, estimated_now) = run.taken();
        line.cost(told_now.since(&told), estimated_now.since(&estimated), run.limits().prices);
        then
    }

    /// Asks the model, within the time left; given up when the process ends. Tells how many bytes were heard, too.
    async fn ask_model(
        &self,
        request: &ModelRequest,
        line: &mut RequestLine<'_>,
        watch: &mut (dyn FnMut(Happening<'_>) + Send),
    ) -> (Asked, usize) {
        watch(Happening::Asked(request));
        let limit = self.deadline.time_left();
        let mut bytes = 0;
        let mut heard = |heard: Heard<'_>| {
            line.heard(heard);
            match heard {
                Heard::Text(text) if !text.is_empty() => {
                    bytes += text.len();
                    watch(Happening::Heard(text));
                }
                Heard::Hidden(more) => bytes += more,
                _ => {}
            }
        };
        // A model that keeps to its limit ends first; one that does not must not cost the hand-off its time.
        let asked = timeout(limit, self.model.converse(request, limit, &mut heard));
        let asked = tokio::select! {
            biased;
            () = self.ending.begun() => Asked::Ending,
            asked = asked => match asked {
                Ok(Ok(reply)) => Asked::Replied(reply),
                Ok(Err(failure)) => Asked::Failed(failure),
                Err(_) => Asked::Failed(ModelFailure {
                    kind: ModelFailureKind::Timeout,
                    sentence: String::from("The model did not answer in the time that was left."),
                }),
            },
        };
        (asked, bytes)
    }
}

/// How the model's call ended.
enum Asked {
    Replied(ModelReply),
    Failed(ModelFailure),
    Ending,
}
