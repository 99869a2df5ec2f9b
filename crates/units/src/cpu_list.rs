//! Lists of processors in the kernel's format.

/// The first and last number of each range in a list such as `0-3,8` (kernel document `admin-guide/cputopology`); `None` if it is no such
/// list.
pub fn cpu_list(list: &str) -> Option<Vec<(u64, u64)>> {
    list.split(',').map(span).collect()
}

fn span(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (first..u64::MAX).contains(&last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_spans() {
        assert_eq!(cpu_list("0-2,8"), Some(vec![(0, 2), (8, 8)]));
        assert_eq!([cpu_list(""), cpu_list("3-1"), cpu_list("1,x")], [None, None, None]);
    }
}
