//! The configuration of every AWS client, made in one place, and what a failed call of one means (`failure`).
//!
//! | what | value | why |
//! | --- | --- | --- |
//! | retries | `RETRY_MODE`, 3 attempts | the client retries what it knows best; the pipeline then does not |
//! | connection | 1 s | a connection that does not come about is tried again: nothing was sent |
//! | operation | 25 s, and cut to the time left by each call | the SDK waits for ever for an answer that never comes |
//! | stalled stream | less than 1 byte a second for 5 s | half an answer is no answer |
//! | idle connection | 20 s | one that died while the process was frozen should not be used again |
//!
//! A request on a connection that turns out to be dead fails with a broken connection, and nobody knows whether it was
//! served. The record table's requests can all be repeated, and the client does; a `Once` tool such as mail cannot, and
//! ends as unknown. `IDLE` makes that rare: AWS closes idle connections after a minute or more.
//!
//! TLS is rustls over ring. AWS-LC, the SDK's default, seeds its generator by CPU jitter, which puts 30 to 45 ms of CPU
//! into the first TLS call of a process; ring does not, and makes the binary smaller (`docs/performance.md`).

mod failure;

use std::time::Duration;

use aws_config::{
    BehaviorVersion, ConfigLoader, SdkConfig, retry::RetryConfig,
    stalled_stream_protection::StalledStreamProtectionConfig, timeout::TimeoutConfig,
};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};

pub(crate) use self::failure::{Meaning, THROTTLING, connection_was_refused, meaning};

/// Attempts of an AWS client, the first included. The pipeline does not retry what a client has retried.
const MAX_ATTEMPTS: u32 = 3;
/// A connection that was idle for longer is not used again.
const IDLE: Duration = Duration::from_secs(20);
/// The time that an answer may stand still.
const STALLED: Duration = Duration::from_secs(5);

/// How AWS clients retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryMode {
    /// With growing waits, and after a throttle more slowly for every request of this process.
    #[default]
    Adaptive,
    /// With growing waits.
    Standard,
}

/// Region and credentials from the environment, as Lambda sets them.
pub async fn sdk_config(mode: RetryMode) -> SdkConfig {
    let https = Builder::new().pool_idle_timeout(IDLE).tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    loader(mode).http_client(https).load().await
}

fn loader(mode: RetryMode) -> ConfigLoader {
    aws_config::defaults(BehaviorVersion::v2026_01_12())
        .retry_config(retries(mode))
        .timeout_config(timeouts())
        .stalled_stream_protection(stalled_streams())
}

/// Both modes repeat a throttled or unanswered request with growing waits. Adaptive also makes this process ask more slowly
/// after a throttle: it lowers the load, and costs one call 20 seconds (measured in `docs/time-and-retries.md`).
pub fn retries(mode: RetryMode) -> RetryConfig {
    let retries = match mode {
        RetryMode::Adaptive => RetryConfig::adaptive(),
        RetryMode::Standard => RetryConfig::standard(),
    };
    retries.with_max_attempts(MAX_ATTEMPTS)
}

/// The bounds of one operation, all its attempts and waits included.
pub fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder().connect_timeout(Duration::from_secs(1)).operation_timeout(Duration::from_secs(25)).build()
}

/// The bound of half an answer.
pub fn stalled_streams() -> StalledStreamProtectionConfig {
    StalledStreamProtectionConfig::enabled().grace_period(STALLED).build()
}
