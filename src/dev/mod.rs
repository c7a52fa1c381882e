//! The local program's parts. Left out of the Lambda binary.

pub mod template;
