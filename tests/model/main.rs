//! A model check of the idempotency protocol.

mod caller;
mod table;
mod world;

use caller::EffectOf;
use stateright::{Checker, Model};
use world::{Approval, Protocol};

const SHORT: &[u64] = &[0, 1_000, 1_700, 2_100, 3_200, 70_000];
const LONG: &[u64] = &[0, 2_100, 3_700_000];

fn protocol(effect: EffectOf) -> Protocol {
    Protocol {
        effect,
        callers: 2,
        faults: 2,
        approval: Approval::No,
        reconciles: false,
        moments: SHORT,
        fences: true,
        margin: true,
    }
}

#[test]
fn try_it() {
    for (approval, reconciles, faults, callers, moments) in [
        (Approval::No, false, 3, 2, SHORT),
        (Approval::No, true, 2, 2, SHORT),
        (Approval::No, true, 1, 3, SHORT),
        (Approval::ByPolicy, false, 2, 2, LONG),
        (Approval::ByPolicy, true, 1, 3, LONG),
        (Approval::AskedByTheTool, false, 2, 2, LONG),
    ] {
        for effect in [EffectOf::Once, EffectOf::Keyed, EffectOf::Atomic] {
            if reconciles && effect != EffectOf::Once {
                continue;
            }
            let start = std::time::Instant::now();
            let p = Protocol { approval, reconciles, faults, callers, moments, ..protocol(effect) };
            let checker = p.checker().threads(2).target_state_count(3_000_000).spawn_bfs().join();
            println!(
                "{effect:?} {approval:?} {reconciles} {faults} {callers}: {} states, {} unique, {:?} deep {}",
                checker.state_count(),
                checker.unique_state_count(),
                start.elapsed(),
                checker.max_depth()
            );
            for (name, path) in checker.discoveries() {
                let last = path.last_state().clone();
                if name.starts_with("an effect") || name.starts_with("a call") {
                    continue;
                }
                println!("  {name}: {:?}", path.clone().into_actions());
                println!("  {:?}\n {:?}", last.broken(), last);
            }
        }
    }
}
