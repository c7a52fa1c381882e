//! A loop over Bedrock's Converse API that always ends, and ends well.
//!
//! | module | its one idea |
//! | --- | --- |
//! | [`conversation`] | messages, as Converse writes them |
//! | [`model`] | what is asked of a model, and what it answers |
//! | [`usage`] | tokens |

pub mod conversation;
pub mod model;
pub mod usage;
