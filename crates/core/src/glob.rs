//! Placeholder until the real one lands.
#![allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob(String);
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bad glob")]
pub struct GlobError;
impl Glob {
    pub fn parse(t: &str) -> Result<Glob, GlobError> {
        if t.starts_with('/') || t.contains("..") { Err(GlobError) } else { Ok(Glob(t.into())) }
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
    pub fn overlaps(&self, o: &Glob) -> bool {
        let p = |s: &str| s.split('*').next().unwrap().to_owned();
        p(&self.0).starts_with(&p(&o.0)) || p(&o.0).starts_with(&p(&self.0))
    }
}
