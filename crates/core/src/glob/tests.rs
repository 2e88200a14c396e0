//! What globs mean, as tables: normalised text, matches, overlaps, prefixes, refusals.

use super::*;

fn glob(text: &str) -> Glob {
    Glob::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn spelling_is_normalised() {
    let table = [
        ("a/b", "a/b"),
        ("./a//b", "a/b"),
        ("a/./b", "a/b"),
        ("././a", "a"),
        ("src/", "src/**"),
        ("src//", "src/**"),
        ("src/.", "src/**"),
        ("src/**/", "src/**"),
        (".", "**"),
        ("./", "**"),
        ("**/**/a/**/**", "**/a/**"),
        ("a**b", "a*b"),
        ("***", "*"),
        (r"\,\-", ",-"),
        (r"a\/b", "a/b"),
        (r"\*\{\,", r"\*\{,"),
        (r"{a\,b,c}", r"{a\,b,c}"),
        ("[a]", "a"),
        ("[a-a]", "a"),
        ("[*]", r"\*"),
        ("[abc]", "[a-c]"),
        ("[cba]", "[a-c]"),
        ("[ab]", "[ab]"),
        ("[a-cb-e]", "[a-e]"),
        ("[a-]", r"[\-a]"),
        ("[--9]", r"[\-.0-9]"),
        ("[^a]", "[!a]"),
        (r"[\^a]", r"[\^a]"),
        (r"[\]\[]", r"[\[\]]"),
        ("{a}", "a"),
        ("{{a,b}}", "{a,b}"),
        ("./src//{a,b}/", "src/{a,b}/**"),
        ("./{a,b}", "{a,b}"),
        ("./{/a,b}", "./{/a,b}"),
        ("**{,a}", "**{,a}"),
        ("a]b,c-d!", "a]b,c-d!"),
        ("名/é", "名/é"),
    ];
    for (written, normalised) in table {
        assert_eq!(glob(written).as_str(), normalised, "{written}");
        assert_eq!(glob(normalised), glob(written), "{written}");
    }
}

/// A store reads thousands of these for one decision.
#[test]
fn plain_globs_are_read_the_short_way() {
    let longest = "a".repeat(MAX_GLOB_BYTES);
    for text in ["src", "src/main.rs", "src/**", "**/a/**/b", "**", "a b/c,d-e!", &longest] {
        assert_eq!(Glob::parse_plain(text), Glob::parse_any(text).ok(), "{text}");
    }
    for text in
        ["", "a//b", "./a", "a/", "**/**", "*.rs", "a?", "[a]", "{a,b}", "C:/x", "é", "a%2fb"]
    {
        assert_eq!(Glob::parse_plain(text), None, "{text}");
    }
}

#[test]
fn matching() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("src", &["src"], &["src/a", "srcs", "Src", "a/src"]),
        ("src/", &["src", "src/a", "src/a/b"], &["srcs", "a/src"]),
        ("*", &["a", ".env", "a b"], &["a/b"]),
        ("*.rs", &[".rs", "a.rs", "a.b.rs"], &["a.rsx", "a/b.rs"]),
        ("a*b*c", &["abc", "aXbYc", "abbcc"], &["acb", "abcd"]),
        ("?", &["a", "é", "🦀"], &["ab", "", "."]),
        ("a?c", &["abc", "a.c"], &["ac", "a/c"]),
        ("**", &["a", "a/b", ".a/b/c"], &[""]),
        ("**/a", &["a", "b/a", "b/c/a"], &["a/b", "ba"]),
        ("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/b/c"]),
        ("a/**/b/**/c", &["a/b/c", "a/b/b/x/c", "a/x/b/c"], &["a/c"]),
        ("**/*.rs", &["a.rs", "x/a.rs"], &["a.md"]),
        ("[a-c]", &["a", "b", "c"], &["d", "A", "ab"]),
        ("[!a-c]", &["d", "-", "🦀"], &["a", "b", "", "."]),
        ("a[!b]c", &["aac", "a.c"], &["abc", "a/c"]),
        ("a[+-9]c", &["a+c", "a0c", "a.c"], &["a/c"]),
        ("{a,b/c}", &["a", "b/c"], &["b", "a/c"]),
        ("src{,/**}", &["src", "src/a"], &["srca"]),
        ("{a,{b,c{d,e}}}.x", &["a.x", "b.x", "ce.x"], &["c.x"]),
        ("x/{,y}/z", &["x/z", "x/y/z"], &["x/w/z"]),
        (r"\*", &["*"], &["a"]),
        (r"a\{b,c\}", &["a{b,c}"], &["ab"]),
        ("*", &[], &["/a", "a/", "..", ".", "a\0"]),
        ("**", &[], &["a//b", "../a", "a/./b", "a/..", "/"]),
    ];
    for (text, matching, others) in table {
        for path in *matching {
            assert!(glob(text).matches(path), "{text} must match {path}");
        }
        for path in *others {
            assert!(!glob(text).matches(path), "{text} must not match {path}");
        }
    }
}

#[test]
fn overlap() {
    let table = [
        ("src", "src", true),
        ("src", "src/main.rs", false),
        ("src", "src/", true),
        ("src/", "src/main.rs", true),
        ("src/a/", "src/b/", false),
        ("src/**", "**/main.rs", true),
        ("*", "a/b", false),
        ("a*", "*b", true),
        ("a*", "b*", false),
        ("*.rs", "*.md", false),
        ("a*.rs", "*b.*", true),
        ("*a", "a", true),
        ("?", "??", false),
        ("?*", "??", true),
        ("a/**/b", "a/*/c", false),
        ("a/**/b", "a/*/*/b", true),
        ("a/**", "**/b/c", true),
        ("**/a/**/b", "b/**/a", false),
        ("**/a", "**/b", false),
        ("**/a/*", "**/b", true),
        ("**/*.rs", "src/{api,core}/*", true),
        ("[a-m]*", "[n-z]*", false),
        ("[a-m]", "[m-z]", true),
        ("[!a]", "a", false),
        ("[!a]", "[!b]", true),
        ("[!a]", "[a]", false),
        ("[ac]", "[bd]", false),
        ("[acegi]", "[bdfhi]", true),
        ("x[!a-z]", "x[b-y]", false),
        ("{a,b}", "{c,d}", false),
        ("{a,b}/x", "{c,b}/*", true),
        ("lib/{a,b}", "src/{a,b}", false),
        // Only `..` would match both, and it names no file.
        ("[.a]?", "?[.b]", true),
        ("[.a].", ".[.b]", false),
        ("[.a]..", ".[.b]?", true),
        ("??.", "?[!x].", true),
        ("{.a,..}x", "..*", true),
        // The only characters between these are surrogates, which are none.
        ("[\u{d7ff}-\u{e000}]", "[!\u{d7ff}\u{e000}]", false),
        ("[!\u{d7ff}]", "\u{e000}", true),
        ("[!\u{e000}]", "\u{d7ff}", true),
        ("[!\u{10ffff}]", "[\u{10ffff}]", false),
    ];
    for (left, right, expected) in table {
        let (a, b) = (glob(left), glob(right));
        assert_eq!(a.overlaps(&b), expected, "{left} and {right}");
        assert_eq!(b.overlaps(&a), expected, "{right} and {left}");
    }
}

/// A yes is certain; `false` also stands for what cannot be told.
#[test]
fn inclusion() {
    let table = [
        ("src/*", "src/main.rs", true),
        ("src/*", "src/a/b", false),
        ("src/a", "src/*", false),
        ("*/x", "a*/x", true),
        ("b*/x", "a*/x", false),
        ("**/*.rs", "src/*.rs", true),
        ("**/*.rs", "src/*.md", false),
        ("**", "a/*/c", true),
        ("**", "**/a", true),
        ("*", "**", false),
        ("a/**", "a", true),
        ("a/**", "a/b/c", true),
        ("a/**", "b", false),
        ("**/a", "a", true),
        ("**/a", "x/y/a", true),
        ("**/a", "x/a/y", false),
        ("**/a/b", "a", false),
        ("a/**/b", "a/b", true),
        ("a/**/b", "a/x/y/b", true),
        ("a/**/b", "a/**/x/b", true),
        ("a/**/b", "a/**", false),
        ("a/b", "a", false),
        ("a", "a/b", false),
        ("{a,b}/**", "{b/x,a}", true),
        ("{a,b}", "{a,c}", false),
    ];
    for (wide, narrow, expected) in table {
        assert_eq!(glob(wide).includes(&glob(narrow)), expected, "{wide} and {narrow}");
        assert!(glob(wide).includes(&glob(wide)), "{wide}");
    }
}

/// Globs whose beginnings part are not walked at all.
#[test]
fn beginnings_are_related_along_whole_segments() {
    let table = [
        ("", "", true),
        ("", "src", true),
        ("src", "src", true),
        ("src", "src/api", true),
        ("src", "srcs", false),
        ("src/a", "src/b", false),
        ("src", "lib", false),
    ];
    for (left, right, expected) in table {
        assert_eq!(segment::related(left, right), expected, "{left} and {right}");
        assert_eq!(segment::related(right, left), expected, "{right} and {left}");
    }
}

#[test]
fn literal_prefixes() {
    let table = [
        ("src/api/**/*.rs", "src/api"),
        ("src/main.rs", "src/main.rs"),
        ("src/", "src"),
        ("src/a*", "src"),
        ("*", ""),
        ("**/a", ""),
        (r"a\*b/?", "a*b"),
        ("src/{a,b}/c", "src"),
        ("src/{a/x,a/y}", "src/a"),
        ("src{,/**}", "src"),
        ("{src,srcs}/a", ""),
        ("{a,a}", "a"),
    ];
    for (text, prefix) in table {
        assert_eq!(glob(text).literal_prefix(), prefix, "{text}");
    }
}

#[test]
fn what_could_leave_the_root_is_refused() {
    let absolute = [
        "/",
        "/x",
        r"\/x",
        "C:/x",
        "c:x",
        "C:",
        "./C:/x",
        "[C]:/x",
        r"\\server/share",
        r"[\\]x",
        "{/a,b}",
        "{a,}/b",
        "{x,C:}/a",
        r"{a,\\server}",
    ];
    for text in absolute {
        let error = Glob::parse(text).expect_err(text);
        assert!(matches!(error, GlobError::Absolute { .. }), "{text}: {error}");
    }
    let parent =
        ["..", "../a", "a/../b", "a/..", r"\.\./a", "[.][.]/a", "a/{..,b}", "{.,a}./b", "./../a"];
    for text in parent {
        let error = Glob::parse(text).expect_err(text);
        assert!(matches!(error, GlobError::ParentSegment { .. }), "{text}: {error}");
    }
    let encoded = [
        "%2e%2e/a", "%2E%2e", ".%2e/a", "a%2fb", "a%2Fb", "a%5cb", "a%5Cb", "a%00", r"\%2e",
        "[%]2f", "%{2,3}f",
    ];
    for text in encoded {
        let error = Glob::parse(text).expect_err(text);
        assert!(matches!(error, GlobError::UrlEncoded { .. }), "{text}: {error}");
    }
    for text in ["...", "..a", "a..", "a/...", "100%", "%20", "ab:c", "a/C:"] {
        assert_eq!(glob(text).as_str(), text);
    }
}

#[test]
fn each_refusal_names_the_text_in_one_sentence() {
    let long = "a".repeat(MAX_GLOB_BYTES + 1);
    let long_message = format!("glob `{}…` is 1025 bytes long, more than 1024", &long[..40]);
    let deep = format!("{}a,b{}", "{".repeat(17), "}".repeat(17));
    let deep_message = format!("glob `{deep}` nests braces more than 16 deep");
    let table = [
        ("", "glob `` is empty or has an empty alternative"),
        ("{,a}", "glob `{,a}` is empty or has an empty alternative"),
        (&*long, &*long_message),
        ("/x", "glob `/x` is absolute"),
        ("C:/x", "glob `C:/x` is absolute"),
        (r"C:\x", r"glob `C:\x` escapes `x`, which needs no escape"),
        ("a/../b", "glob `a/../b` has a `..` segment"),
        ("a\0b", r"glob `a\0b` contains the control character `\0`"),
        ("a\nb", r"glob `a\nb` contains the control character `\n`"),
        ("a\u{85}", r"glob `a\u{85}` contains the control character `\u{85}`"),
        ("a%2Fb", "glob `a%2Fb` contains the URL-encoded `%2F`"),
        ("[ab", "glob `[ab` has a `[` without a `]`"),
        ("[a-", "glob `[a-` has a `[` without a `]`"),
        ("[]a]", "glob `[]a]` has an empty character class"),
        ("[!]", "glob `[!]` has an empty character class"),
        ("[z-a]", "glob `[z-a]` has the backward range `z-a`"),
        ("[a/]", "glob `[a/]` has a `/` in a character class"),
        ("[[:alpha:]]", "glob `[[:alpha:]]` has a named character class"),
        ("{a,b", "glob `{a,b` has an unbalanced brace"),
        ("a}", "glob `a}` has an unbalanced brace"),
        (&*deep, &*deep_message),
        ("a\\", r"glob `a\` ends in `\` with nothing to escape"),
        (r"src\main.rs", r"glob `src\main.rs` escapes `m`, which needs no escape"),
        ("\u{202e}/../", r"glob `\u{202e}/../` has a `..` segment"),
    ];
    for (text, message) in table {
        assert_eq!(Glob::parse(text).expect_err(text).to_string(), message);
    }
}

#[test]
fn hints_say_what_to_write_instead() {
    let hint = |text| Glob::parse(text).expect_err(text).hint();
    assert_eq!(hint(""), Some("Write `**` for the whole repository."));
    assert!(hint("../a").is_some_and(|hint| hint.contains("a relative path in the repository")));
    assert_eq!(hint("a\nb"), None);
}

#[test]
fn limits_are_exact() {
    let longest = "a".repeat(MAX_GLOB_BYTES);
    assert_eq!(glob(&longest).as_str(), longest);
    // Fits as written but not with the `**` that it stands for.
    let directory = format!("{}/", &longest[1..]);
    let too_long = Glob::parse(&directory);
    assert!(matches!(too_long, Err(GlobError::TooLong { bytes: 1026, .. })));

    let doubled = "{a,b}".repeat(8);
    assert!(glob(&doubled).matches("abababab"));
    let too_many = [
        "{a,b}".repeat(9),
        "{a,b}".repeat(200),
        format!("{}{{a,b,c}}", "{a,b}".repeat(7)),
        format!("{}{doubled}", "x".repeat(60)),
    ];
    for text in too_many {
        let error = Glob::parse(&text).expect_err(&text);
        assert!(matches!(error, GlobError::TooManyAlternatives { .. }), "{error}");
    }
    // 256 alternatives of 32 characters each, where a class counts as many as it has ranges.
    let odd: String = ('0'..='z').step_by(2).filter(char::is_ascii_alphanumeric).take(24).collect();
    for (text, fits) in [
        (format!("{}{doubled}", "x".repeat(24)), true),
        (format!("{}{doubled}", "x".repeat(25)), false),
        (format!("[{odd}]{doubled}"), true),
        (format!("[{odd}]x{doubled}"), false),
    ] {
        assert_eq!(Glob::parse(&text).is_ok(), fits, "{text}");
    }
    let deepest = format!("{}a,b{}", "{".repeat(16), "}".repeat(16));
    assert_eq!(glob(&deepest), glob("{a,b}"));
}

/// An exponential walk would not end here.
#[test]
fn hostile_globs_are_decided() {
    let characters = "*a".repeat(500);
    let segments = "**/a/".repeat(200);
    let (left, right) = (format!("{characters}b"), format!("{characters}c"));
    assert!(!glob(&left).overlaps(&glob(&right)));
    assert!(!glob(&left).matches(&"a".repeat(2000)));
    let (left, right) = (format!("{segments}b"), format!("{segments}c"));
    assert!(!glob(&left).overlaps(&glob(&right)));
    assert!(!glob(&left).matches(&"a/".repeat(1000).replace("a/a", "a/aa")));
    let branching = "{*a,*b}".repeat(8);
    let (left, right) = (format!("{branching}x"), format!("{branching}y"));
    assert!(!glob(&left).overlaps(&glob(&right)));
}

#[test]
fn a_literal_matches_its_path_alone() {
    for path in ["a/b.rs", "a*b", "[x]", "{a,b}", r"back\slash", "a,b", "ü/?"] {
        let literal = Glob::literal(path).unwrap();
        assert!(literal.matches(path), "{path}: {}", literal.as_str());
        assert_eq!(literal.literal_prefix(), path);
    }
    for path in ["/a", "../a", "a/../b", "", "a%2fb", "C:/x", "\\\\server"] {
        assert!(Glob::literal(path).is_err(), "{path}");
    }
}

#[test]
fn prefixes_can_be_replaced_by_what_links_lead_to() {
    let table = [
        ("link/*.rs", "src/*.rs"),
        ("link", "src"),
        ("link/", "src/**"),
        ("docs/x", "docs/x"),
        ("odd/**", r"o\*d/**"),
        ("{link,docs}/a,b", r"{src/a\,b,docs/a\,b}"),
        ("*/link", "*/link"),
    ];
    for (written, expected) in table {
        let real = |prefix: &str| -> Result<Option<String>, GlobError> {
            let (first, rest) = prefix.split_once('/').unwrap_or((prefix, ""));
            let first = match first {
                "link" => "src",
                "odd" => "o*d",
                _ => return Ok(None),
            };
            let separator = if rest.is_empty() { "" } else { "/" };
            Ok(Some(format!("{first}{separator}{rest}")))
        };
        let replaced = glob(written).with_real_prefixes(real).unwrap();
        assert_eq!(replaced, glob(expected), "{written}: {}", replaced.as_str());
    }
}
