//! What acts add to the rules: in whose name each is asked, what it answers, and small records.

mod breaking;
mod labels;
mod lengths;
mod output;
mod workers;
