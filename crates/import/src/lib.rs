//! Logs of other tracers.
