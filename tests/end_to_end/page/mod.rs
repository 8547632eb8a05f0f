//! The page's server: who may ask, and whether what it says is true.

mod live;
mod numbers;
mod proxies;
mod roles;
mod security;
mod tls;
