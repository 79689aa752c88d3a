fn main() -> std::process::ExitCode {
    dpm::cli::main()
}
