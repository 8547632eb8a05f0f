//! Directories and files by descriptor, and whom they belong to.

pub(crate) mod dir;
pub(crate) mod new_dir;
pub(crate) mod new_file;
pub(crate) mod owner;
pub(crate) mod trusted;
