//! Window, pixels and filter: what most addresses take.

use axum::extract::FromRequestParts;
use axum::extract::Query;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::filter::Filter;

/// Most pixels that are worth asking for.
const MAX_PIXELS: u32 = 16_384;

/// Parameters that most addresses share.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SelectionParams {
    /// Begin of the window, nanoseconds since the start; by default the begin of the session.
    pub from: Option<f64>,
    /// End of the window, which is not part of it; by default the end of the session.
    pub to: Option<f64>,
    /// Number of buckets: the answer has between this number and twice as many.
    pub pixels: Option<u32>,
    /// The filter, as JSON.
    pub f: Option<String>,
}

/// The requested selection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    from: Option<f64>,
    to: Option<f64>,
    /// Buckets that are wanted.
    pub pixels: u32,
    /// Which calls.
    pub filter: Filter,
}

/// A window in CLOCK_MONOTONIC nanoseconds, its end not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub from: i64,
    pub to: i64,
}

impl Window {
    /// Condition on a column of times.
    pub fn sql(&self, column: &str) -> String {
        format!("{column} >= {} AND {column} < {}", self.from, self.to)
    }

    /// Width of buckets such that there are `pixels`, or up to twice as many.
    pub fn bucket_ns(&self, pixels: u32) -> i64 {
        let width = self.to.saturating_sub(self.from) / i64::from(pixels.max(1));
        1 << width.max(1).ilog2()
    }
}

impl SelectionParams {
    pub fn parse(&self) -> Result<Selection, ApiError> {
        for (name, value) in [("from", self.from), ("to", self.to)] {
            // 2^53: numbers beyond are not exact.
            if value.is_some_and(|v| !v.is_finite() || v.abs() > 9_007_199_254_740_992.0) {
                return Err(ApiError::parameter(name, "it is no time within 104 days"));
            }
        }
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(ApiError::parameter(
                "to",
                "the window ends before it begins",
            ));
        }
        Ok(Selection {
            from: self.from,
            to: self.to,
            pixels: self.pixels.unwrap_or(1000).clamp(1, MAX_PIXELS),
            filter: Filter::parse(self.f.as_deref())?,
        })
    }
}

impl Selection {
    /// Whether it is all calls of the session.
    pub fn is_whole(&self) -> bool {
        let ends = self.from.is_some() || self.to.is_some();
        !ends && self.filter.is_empty()
    }

    /// Those ends of `window`, its window, that were asked for.
    pub fn ends(&self, window: Window) -> (Option<i64>, Option<i64>) {
        (self.from.map(|_| window.from), self.to.map(|_| window.to))
    }

    /// The window: of a session that began at `started_at_ns` and whose calls span `span`.
    pub fn window(&self, started_at_ns: i64, span: Option<(i64, i64)>) -> Window {
        let (first, last) = span.unwrap_or((started_at_ns, started_at_ns));
        let from = self
            .from
            .map(|t| started_at_ns.saturating_add(t.floor() as i64));
        let to = self
            .to
            .map(|t| started_at_ns.saturating_add(t.ceil() as i64));
        let from = from.unwrap_or(to.map_or(first, |to| first.min(to.saturating_sub(1))));
        let to = to.unwrap_or(last.saturating_add(1));
        Window {
            from,
            to: to.max(from.saturating_add(1)),
        }
    }
}

/// Parameters of an address, with errors as the page gets them.
pub(crate) struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Params(params)),
            Err(e) => Err(ApiError::parameter("the address", e.body_text())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(from: Option<f64>, to: Option<f64>) -> Window {
        let params = SelectionParams {
            from,
            to,
            ..SelectionParams::default()
        };
        params.parse().unwrap().window(1000, Some((1010, 1100)))
    }

    #[test]
    fn windows_are_since_the_start() {
        assert_eq!(
            window(None, None),
            Window {
                from: 1010,
                to: 1101
            }
        );
        assert_eq!(
            window(Some(1.5), Some(2.5)),
            Window {
                from: 1001,
                to: 1003
            }
        );
        assert_eq!(
            window(Some(500.0), None),
            Window {
                from: 1500,
                to: 1501
            }
        );
        assert_eq!(
            window(None, Some(5.0)),
            Window {
                from: 1004,
                to: 1005
            }
        );
        assert_eq!(
            window(Some(-5.0), None),
            Window {
                from: 995,
                to: 1101
            }
        );
        let empty = Selection::default().window(7, None);
        assert_eq!(empty, Window { from: 7, to: 8 });
    }

    #[test]
    fn buckets_are_as_many_as_pixels_or_up_to_twice() {
        for (width, pixels) in [(1000, 10), (1 << 40, 777), (5, 100), (1, 1)] {
            let bucket = Window { from: 0, to: width }.bucket_ns(pixels);
            let count = width / bucket;
            assert!(bucket == 1 || (i64::from(pixels)..=2 * i64::from(pixels)).contains(&count));
        }
    }

    #[test]
    fn bad_windows_are_refused() {
        for (from, to) in [(2.0, 1.0), (1.0, 1.0), (f64::NAN, 1.0), (0.0, 1e300)] {
            let params = SelectionParams {
                from: Some(from),
                to: Some(to),
                ..SelectionParams::default()
            };
            assert!(params.parse().is_err());
        }
    }
}
