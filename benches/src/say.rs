/// A line on standard output. Whoever reads it may have seen enough, as `head` has: that ends the program, quietly.
macro_rules! say {
    ($($words:tt)*) => {
        if std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($words)*))).is_err() {
            #[allow(clippy::exit, reason = "there is no one to tell anything")]
            std::process::exit(0);
        }
    };
}
