//! A request in the SDK's types, sent through either operation.

use aws_sdk_bedrockruntime::{
    Client,
    config::Builder,
    error::SdkError,
    operation::{
        converse::{ConverseError, ConverseOutput},
        converse_stream::{ConverseStreamError, ConverseStreamOutput},
    },
    types::{InferenceConfiguration, Message, SystemContentBlock, ToolConfiguration},
};
use aws_smithy_types::error::operation::BuildError;

use super::blocks;
use crate::agent::model::ModelRequest;

pub(super) struct Request {
    messages: Vec<Message>,
    system: Option<Vec<SystemContentBlock>>,
    tools: Option<ToolConfiguration>,
    inference: Option<InferenceConfiguration>,
}

impl Request {
    pub fn of(request: &ModelRequest) -> Result<Self, BuildError> {
        let limit = request.max_output_tokens.map(|most| i32::try_from(most).unwrap_or(i32::MAX));
        Ok(Self {
            messages: blocks::messages(&request.messages)?,
            system: request.system.as_ref().map(|text| vec![SystemContentBlock::Text(text.clone())]),
            tools: request.tool_config.as_ref().map(blocks::tool_configuration).transpose()?,
            inference: limit.map(|most| InferenceConfiguration::builder().max_tokens(most).build()),
        })
    }

    // The SDK has a builder for each operation, with the same setters and no trait in common: what is set in one of the two
    // below is set in the other.

    /// Through `Converse`, on these terms.
    pub async fn send(
        self,
        client: &Client,
        model: &str,
        terms: Builder,
    ) -> Result<ConverseOutput, SdkError<ConverseError>> {
        let Self { messages, system, tools, inference } = self;
        let builder = client.converse().model_id(model).set_messages(Some(messages)).set_system(system);
        let builder = builder.set_tool_config(tools).set_inference_config(inference);
        builder.customize().config_override(terms).send().await
    }

    /// Through `ConverseStream`, on these terms.
    pub async fn open_stream(
        self,
        client: &Client,
        model: &str,
        terms: Builder,
    ) -> Result<ConverseStreamOutput, SdkError<ConverseStreamError>> {
        let Self { messages, system, tools, inference } = self;
        let builder = client.converse_stream().model_id(model).set_messages(Some(messages)).set_system(system);
        let builder = builder.set_tool_config(tools).set_inference_config(inference);
        builder.customize().config_override(terms).send().await
    }
}
