//! Words that an option takes.

/// The one of `all` that is called `name`.
///
/// # Errors
/// A sentence that lists the names when there is none.
pub fn format_named<T: Copy>(
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
    name: &str,
) -> Result<T, String> {
    all.iter()
        .copied()
        .find(|one| name_of(*one) == name)
        .ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|one| name_of(*one)).collect();
            format!(
                "there is no format {name:?}; there are {}",
                names.join(", ")
            )
        })
}
