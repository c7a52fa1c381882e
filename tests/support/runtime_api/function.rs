//! A running function.

use std::{
    io::Read,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::sync::oneshot;

use super::{Answer, Event, PATIENCE, RuntimeApi};

/// A running function. Ends with the value.
pub struct Function {
    api: RuntimeApi,
    child: Child,
    output: Arc<Mutex<String>>,
    launched: Instant,
}

impl Function {
    /// Starts the program as Lambda does, with these variables, those that Lambda sets, and no others.
    pub(super) fn launch(api: RuntimeApi, program: &Path, variables: &[(&str, &str)]) -> Self {
        let (launched, address) = (Instant::now(), api.address());
        let mut child = Command::new(program)
            .env_clear()
            .envs([
                ("AWS_LAMBDA_RUNTIME_API", address.as_str()),
                ("AWS_LAMBDA_FUNCTION_NAME", "tools"),
                ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
                ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
                ("AWS_REGION", "eu-west-1"),
                ("AWS_ACCESS_KEY_ID", "test"),
                ("AWS_SECRET_ACCESS_KEY", "test"),
            ])
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = Arc::default();
        collect(child.stdout.take(), &output);
        collect(child.stderr.take(), &output);
        Self { api, child, output, launched }
    }

    /// Hands out an invocation and waits for its answer.
    pub async fn invoke(&mut self, event: Event) -> Answer {
        self.try_invoke(event).await.unwrap_or_else(|status| panic!("the function ended: {status}\n{}", self.output()))
    }

    /// Hands out an invocation; the answer comes later.
    pub fn hand_out(&self, event: Event) -> oneshot::Receiver<Answer> {
        self.api.hand_out(event)
    }

    /// Hands out an invocation and waits for its answer, or for the end of the process.
    pub async fn try_invoke(&mut self, event: Event) -> Result<Answer, ExitStatus> {
        let answer = self.api.hand_out(event);
        tokio::select! {
            answer = answer => Ok(answer.unwrap()),
            status = self.ended() => Err(status),
        }
    }

    /// Waits until the function has started, and asks for an invocation. Returns how long that took.
    pub async fn ready(&mut self) -> Duration {
        let mut polls = self.api.shared.polls.subscribe();
        tokio::select! {
            _ = polls.wait_for(|polls| *polls > 0) => self.launched.elapsed(),
            status = self.ended() => panic!("the function did not start: {status}\n{}", self.output()),
        }
    }

    /// Waits for the end of the process.
    pub async fn ended(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the function neither answers nor ends:\n{}", self.output());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sends a signal, for example `TERM`, as Lambda does to functions that have an extension.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits until its extension, without which Lambda sends no signal, has said that it has started.
    pub async fn extended(&self) {
        let mut extension = self.api.shared.extension.subscribe();
        let _ = tokio::time::timeout(PATIENCE, extension.wait_for(|started| *started)).await.expect("an extension");
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// What was posted as the reason why the start failed.
    pub fn start_error(&self) -> Option<Value> {
        self.api.shared.start_error.borrow().clone()
    }

    /// Waits until what it has written is enough for `enough`: the pipe is read beside the answers.
    pub async fn output_when(&self, enough: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let output = self.output();
            if enough(&output) {
                return output;
            }
            assert!(start.elapsed() < PATIENCE, "that is all:\n{output}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What it has written so far to stdout and stderr.
    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(stream: Option<impl Read + Send + 'static>, output: &Arc<Mutex<String>>) {
    let (mut stream, output) = (stream.unwrap(), Arc::clone(output));
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            output.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
}
