//! Why a function cannot start, for the person who deploys it.

use crate::{env::SettingsError, runtime::FunctionError, tool::ToolboxError};

/// Why the function cannot start. `Display` gives the sentences for the person who deploys it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting is missing or bad.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The tools are not fit to be offered.
    #[error(transparent)]
    Toolbox(#[from] ToolboxError),
    /// Some door cannot offer some tool. A sentence for each.
    #[error("{0}")]
    Doors(String),
    /// Anything else. One or more sentences.
    #[error("{0}")]
    Other(String),
}

impl StartError {
    /// The error type for Lambda, which asks for the form `Category.Reason`.
    const fn name(&self) -> &'static str {
        match self {
            Self::Settings(_) => "Start.InvalidSettings",
            Self::Toolbox(_) | Self::Doors(_) => "Start.InvalidTools",
            Self::Other(_) => "Start.Failed",
        }
    }
}

impl From<StartError> for FunctionError {
    fn from(error: StartError) -> Self {
        Self::new(error.name(), error.to_string())
    }
}
