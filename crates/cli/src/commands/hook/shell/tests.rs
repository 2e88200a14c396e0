//! A table of command lines, and what they clearly write.

use super::{Discarded, Files, Writes, writes};
use std::path::Path;

/// Files of a made-up repository in `/r`: folders end with a slash.
struct Repository;

const THERE: [&str; 12] = [
    "/r/",
    "/r/src/",
    "/r/src/api/",
    "/r/docs/",
    "/r/a.txt",
    "/r/b.txt",
    "/r/src/main.rs",
    "/r/src/lib.rs",
    "/r/docs/guide.md",
    "/w/",
    "/r/main",
    "/r/with space.txt",
];

impl Files for Repository {
    fn is_folder(&self, path: &Path) -> bool {
        let text = simple(path);
        THERE.contains(&format!("{}/", text.trim_end_matches('/')).as_str())
    }

    fn exists(&self, path: &Path) -> bool {
        self.is_folder(path) || THERE.contains(&simple(path).as_str())
    }
}

/// A path without `.` and `..`, as the caller resolves it.
fn simple(path: &Path) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.to_str().unwrap().split('/').filter(|name| !name.is_empty() && *name != ".") {
        match name {
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// What is written, as one line: files plainly, folders with a slash, patterns with a star, and
/// what git throws away with an exclamation mark (two for the
/// whole worktree, a question mark for files that git does not know).
fn judged(line: &str) -> String {
    let Writes { files, trees, patterns, discards } = writes(line, Path::new("/r"), &Repository);
    let below = |path: &Path| {
        let path = simple(path);
        path.strip_prefix("/r/").map_or_else(|| path.clone(), str::to_owned)
    };
    let mut found: Vec<String> = files.iter().map(|path| below(path)).collect();
    found.extend(trees.iter().map(|path| below(path) + "/"));
    found.extend(patterns.iter().map(|(path, glob)| format!("{}:{glob}", below(path))));
    found.extend(discards.iter().map(|discard| {
        let how = if discard.whole_worktree { "!!" } else { "!" };
        let untracked = match discard.which {
            Discarded::Tracked => "",
            Discarded::Untracked => "?",
            Discarded::Both => "+?",
        };
        format!("{how}{}{untracked}", below(&discard.folder))
    }));
    found.join(" ")
}

/// The line, and what it writes.
const TABLE: &[(&str, &str)] = &[
    // Reading only.
    ("ls -la", ""),
    ("cat a.txt | grep x", ""),
    ("git status && git diff", ""),
    ("echo 'a > b'", ""),
    ("echo \"a > b\"", ""),
    ("echo a \\> b", ""),
    ("grep -rn 'rm -rf' src", ""),
    ("cargo test 2>&1 | tail -5", ""),
    ("# rm a.txt", ""),
    ("test 1 -gt 0 && [[ b > a ]]", ""),
    ("cat < a.txt", ""),
    ("sed -n 1,5p a.txt", ""),
    ("sed s/x/y/ a.txt", ""),
    ("perl -ne 'print' a.txt", ""),
    ("cp a.txt", ""),
    // Redirections.
    ("echo x > a.txt", "a.txt"),
    ("echo x >a.txt", "a.txt"),
    ("echo x>>a.txt", "a.txt"),
    ("echo x >| a.txt", "a.txt"),
    ("make &> build.log", "build.log"),
    ("make &>>build.log", "build.log"),
    ("make > out 2> err", "out err"),
    ("make >& both", "both"),
    ("echo x > 'with space.txt'", "with space.txt"),
    ("echo x > with\\ space.txt", "with space.txt"),
    ("echo x > src/../a.txt", "a.txt"),
    ("echo x > /w/../r/a.txt", "a.txt"),
    ("echo x > /dev/null", "/dev/null"),
    ("for i in 1 2; do echo $i; done > a.txt", "a.txt"),
    ("if true; then echo x > a.txt; fi", "a.txt"),
    ("{ echo x; echo y; } > a.txt", "a.txt"),
    ("(echo x) > a.txt", "a.txt"),
    ("cat > a.txt <<'EOF'\nrm b.txt > c.txt\nEOF\necho y > b.txt", "a.txt b.txt"),
    ("cat <<-EOF > a.txt\n\tx > y\n\tEOF\n", "a.txt"),
    ("cat <<< 'x > y' > a.txt", "a.txt"),
    // Programs.
    ("echo x | tee a.txt b.txt", "a.txt b.txt"),
    ("echo x | tee -a a.txt >/dev/null", "/dev/null a.txt"),
    ("sed -i s/x/y/ a.txt b.txt", "a.txt b.txt"),
    ("sed -i.bak 's/x/y/' a.txt", "a.txt"),
    ("sed -i '' 's/x/y/' a.txt", "a.txt"),
    ("sed -i -e s/x/y/ -e s/y/z/ a.txt", "a.txt"),
    ("sed -Ei 's/x/y/' a.txt", "a.txt"),
    ("sed --in-place=.orig s/x/y/ a.txt", "a.txt"),
    ("sed -ne 5p a.txt", ""),
    ("perl -pi -e 's/x/y/' a.txt b.txt", "a.txt b.txt"),
    ("perl -i.bak -pe 's/x/y/' a.txt", "a.txt"),
    ("perl -0pi -e 's/x/y/' src/main.rs", "src/main.rs"),
    ("rm a.txt", "a.txt"),
    ("rm -rf src docs/", "src/ docs/"),
    ("rm -- -x.txt", "-x.txt"),
    ("rm src/*.rs", "src:*.rs"),
    ("rm *.txt a.txt", "a.txt /r:*.txt"),
    ("rm */x.rs", ""),
    ("mv a.txt b.txt", "a.txt b.txt"),
    ("mv a.txt src", "a.txt src/a.txt"),
    ("mv -t src a.txt b.txt", "a.txt b.txt src/a.txt src/b.txt"),
    ("mv docs old", "docs/ old/"),
    ("cp a.txt c.txt", "c.txt"),
    ("cp a.txt src/", "src/a.txt"),
    ("cp -r docs src", "src/docs/"),
    ("ln -sf a.txt link", "link"),
    ("install -m 755 a.txt bin", "bin"),
    ("truncate -s 0 a.txt", "a.txt"),
    ("touch -d yesterday a.txt", "a.txt"),
    ("dd if=/dev/zero of=a.txt bs=1", "a.txt"),
    ("patch src/main.rs fix.diff", "src/main.rs"),
    ("patch -p1 < fix.diff", ""),
    // In which folder.
    ("cd src && rm main.rs", "src/main.rs"),
    ("cd src; cd ..; rm a.txt", "a.txt"),
    ("(cd src && rm main.rs); rm a.txt", "src/main.rs a.txt"),
    ("cd /w && rm a.txt", "/w/a.txt"),
    ("cd $DIR && rm a.txt", ""),
    ("cd $DIR && rm /r/a.txt", "a.txt"),
    ("cd src | rm a.txt", "a.txt"),
    ("cd - && rm a.txt", ""),
    ("pushd src && rm main.rs && popd && rm a.txt", "src/main.rs"),
    // Around a command.
    ("sudo rm a.txt", "a.txt"),
    ("FOO=1 BAR=2 rm a.txt", "a.txt"),
    ("env FOO=1 rm a.txt", "a.txt"),
    ("env -i rm a.txt", ""),
    ("timeout 5 rm a.txt", "a.txt"),
    ("/bin/rm a.txt", "a.txt"),
    ("bash -lc 'cd src && rm main.rs'", "src/main.rs"),
    ("sh -c \"echo x > a.txt\"", "a.txt"),
    ("sh script.sh -c 'rm a.txt'", ""),
    ("true && rm a.txt || rm b.txt", "a.txt b.txt"),
    ("sleep 9 & rm a.txt", "a.txt"),
    ("rm \\\n  a.txt", "a.txt"),
    // What tenure runs under a lock is judged by the lock.
    ("tenure run path:a.txt -- sed -i s/x/y/ a.txt", ""),
    // What cannot be told.
    ("rm $FILE", ""),
    ("rm \"$FILE\" a.txt", "a.txt"),
    ("rm $(ls)", ""),
    ("rm `ls` a.txt", "a.txt"),
    ("rm ~/x", ""),
    ("echo x > ${OUT:-a.txt}", ""),
    ("find . -name '*.o' -exec rm {} \\;", ""),
    ("ls | xargs rm", ""),
    ("python3 -c 'open(\"a.txt\",\"w\")'", ""),
    ("echo 'unfinished > a.txt", ""),
    ("case x in y) rm a.txt;; esac", ""),
    ("f() { rm a.txt; }", ""),
    ("echo )", ""),
    ("", ""),
    // Git.
    ("git checkout main2", ""),
    ("git checkout -b new", ""),
    ("git checkout -- a.txt src/main.rs", "a.txt src/main.rs"),
    ("git checkout a.txt", "a.txt"),
    ("git checkout HEAD~1 a.txt", "a.txt"),
    ("git checkout .", "!/r"),
    ("git checkout -- .", "!/r"),
    ("git checkout src", "!src"),
    ("git checkout -f other", "!!/r"),
    ("git -C src checkout -- main.rs", "src/main.rs"),
    ("git -c user.name=x rm a.txt", "a.txt"),
    ("git --git-dir=/x/.git checkout -- a.txt", ""),
    ("git restore a.txt", "a.txt"),
    ("git restore --staged a.txt", ""),
    ("git restore --staged --worktree a.txt", "a.txt"),
    ("git restore .", "!/r"),
    ("git rm --cached a.txt", ""),
    ("git rm -r docs", "docs/"),
    ("git mv a.txt c.txt", "a.txt c.txt"),
    ("git reset --hard", "!!/r"),
    ("git reset --hard HEAD~1", "!!/r"),
    ("git reset HEAD a.txt", ""),
    ("git clean -fd", "!!/r?"),
    ("git clean -nfd", ""),
    ("git clean -f src", "!src?"),
    ("git stash", "!!/r"),
    ("git stash -u", "!!/r+?"),
    ("git stash push -m wip", "!!/r"),
    ("git stash push -- a.txt", "a.txt"),
    ("git stash pop", ""),
    ("git stash list", ""),
    ("git switch other", ""),
    ("git switch --discard-changes other", "!!/r"),
    ("cd src && git reset --hard", "!!src"),
    ("git commit -m 'rm > x' && git push", ""),
];

#[test]
fn what_a_command_clearly_writes_is_read_off_it() {
    let wrong: Vec<String> = TABLE
        .iter()
        .filter(|(line, expected)| judged(line) != *expected)
        .map(|(line, expected)| format!("{line:?}: {:?}, expected {expected:?}", judged(line)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(TABLE.len() >= 60);
}

#[test]
fn a_very_long_or_deeply_nested_command_is_not_judged() {
    assert_eq!(judged(&format!("rm a.txt {}", "x ".repeat(60_000))), "");
    assert_eq!(judged(&format!("rm a.txt; {}", "$(".repeat(20_000))), "");
    let mut line = "rm a.txt".to_owned();
    for _ in 0..6 {
        line = format!("sh -c '{}'", line.replace('\'', "'\\''"));
    }
    assert_eq!(judged(&line), "");
}
