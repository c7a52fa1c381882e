//! The local program. `cargo run -- --help` says what it can do.

fn main() -> std::process::ExitCode {
    action_group::dev::main()
}
