//! A person's approval that a call is found to need when it is on its way already.
//!
//! Either the tool asks for it, or the policy has from the beginning, and the record that the call has taken over was begun
//! without: its limit was another then.
//!
//! | the attempts before, of this call or of one whose record it took over | the record | the model reads |
//! | --- | --- | --- |
//! | surely did nothing | is released, and waits anew | `approval_required`, nothing was changed |
//! | the same, and the record keeps an earlier commit out | waits as it is | `approval_required`, nothing was changed |
//! | may have been done (`Keyed`) | waits as it is, and keeps the doubt | `outcome_unknown`, and that it waits |
//!
//! Why keep the record in doubt? Released, it would say that nothing was done. Given up to the next call, as after any
//! other failure in doubt, it would be asked for approval by every call and could be approved by none. So it waits with
//! its doubt. If a person approves, the call runs with the same key, and what was done already is not done twice; if a
//! person refuses, what may have been done is still not denied.

use super::{
    answer::{Answer, found},
    bar::Barred,
    explain,
    pipeline::Pipeline,
    recorded::Entered,
    refusal::{in_progress, note, unavailable, waits},
    run::{Run, new_owner},
};
use crate::{
    idempotency::{ApprovalId, Claim, Guard, Key, Settled},
    outcome::{Failure, FailureKind},
};

/// Why a call in doubt ends that could not be left to a person, where the tool has said nothing.
const UNASKED: &str = "An earlier attempt may have done it, and another one needs the approval of a person.";

impl Pipeline {
    /// A person has to approve this call, and its record says of nobody that he has: asks for that, or goes on if one has.
    /// `why` is the tool's sentence, if it is the tool that wants it.
    pub(super) async fn ask(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &mut Claim,
        guard: Option<Guard>,
        why: &str,
    ) -> Result<Entered, Failure> {
        match guard {
            Some(guard) if run.maybe_done || guard.bars() => {
                return ask_in_place(run, key, claim, guard, why).await.map(Entered::End);
            }
            Some(guard) => {
                if let Some(answer) = release(run, claim, guard).await? {
                    return Ok(Entered::End(answer));
                }
            }
            None if run.maybe_done => match self.bar(run, key, claim).await {
                // What was sent under the old owner stays out.
                Barred::Out => claim.owner = new_owner(),
                Barred::Made(answer) => return Ok(Entered::End(answer)),
                Barred::Open => return Err(unknown(run, why)),
            },
            None => {}
        }
        run.needs_approval = true;
        claim.for_approval = Some(Box::new(run.asking()));
        self.enter(run, key, claim).await.map_err(|failure| match failure.kind() {
            FailureKind::ApprovalRequired => waits(run.tool(), why, false).awaiting(&ApprovalId::of(key, false)),
            _ => failure,
        })
    }
}

/// Frees the key, so that the call can wait anew; or finds the answer of whoever has it now.
async fn release(run: &mut Run<'_>, claim: &mut Claim, guard: Guard) -> Result<Option<Answer>, Failure> {
    match guard.release(run.deadline.time_to_settle()).await {
        // The record begins anew, so its owner does: no late copy of this release can touch it.
        Ok(Settled::AsWritten) => {
            claim.owner = new_owner();
            Ok(None)
        }
        Ok(Settled::Superseded(record)) => Ok(found(run.report, claim, record)),
        // It may land at any time, and then whatever goes on here has no record.
        Err(error) => Err(unavailable(run, &error)),
    }
}

/// The same where an attempt may have been done, or the record keeps a commit out: the record waits as it is.
async fn ask_in_place(run: &mut Run<'_>, key: &Key, claim: &Claim, guard: Guard, why: &str) -> Result<Answer, Failure> {
    let doubt = run.maybe_done;
    match guard.await_approval(&run.asking(), doubt, run.deadline.time_to_settle()).await {
        Ok(Settled::AsWritten) => Err(waits(run.tool(), why, doubt).awaiting(&ApprovalId::of(key, doubt))),
        Ok(Settled::Superseded(record)) => {
            found(run.report, claim, record).ok_or_else(|| if doubt { unknown(run, why) } else { in_progress() })
        }
        // The next call finds the record waiting, or takes it over.
        Err(error) if doubt => {
            note(run, &error);
            Err(unknown(run, why))
        }
        Err(error) => Err(unavailable(run, &error)),
    }
}

fn unknown(run: &Run<'_>, why: &str) -> Failure {
    explain::unknown(run.tool(), if why.is_empty() { UNASKED } else { why })
}
