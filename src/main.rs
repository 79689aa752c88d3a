fn main() -> std::process::ExitCode {
    dpm::command_line()
}
