//! The configuration of every AWS client, made in one place.
//!
//! TLS is rustls over ring. AWS-LC, the SDK's default, seeds its generator by CPU jitter, which puts 30 to 45 ms of CPU
//! into the first TLS call of a process; ring does not, and makes the binary smaller (`docs/performance.md`).

use std::time::Duration;

use aws_config::{BehaviorVersion, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};

/// Attempts of an AWS client, the first included. The pipeline does not retry what a client has retried.
const MAX_ATTEMPTS: u32 = 3;

/// Region and credentials from the environment, as Lambda sets them; adaptive retries; a bound on every operation.
///
/// The SDK has no read timeout of its own: without `operation_timeout` a server that never answers would hang a call
/// until Lambda ends the process. Calls cut it further, to the time they have left.
pub async fn sdk_config() -> SdkConfig {
    let https = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(https)
        .retry_config(retries())
        .timeout_config(timeouts())
        .load()
        .await
}

/// Adaptive mode: it also slows down first attempts after a throttle.
pub fn retries() -> RetryConfig {
    RetryConfig::adaptive().with_max_attempts(MAX_ATTEMPTS)
}

/// The bounds of one operation, all its attempts and waits included.
pub fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder().connect_timeout(Duration::from_secs(1)).operation_timeout(Duration::from_secs(25)).build()
}
