use std::time::Instant;
fn main(){
  let d = std::env::args().nth(1).unwrap_or("/tmp/benchdb".into());
  let _ = std::fs::remove_dir_all(&d); std::fs::create_dir_all(&d).unwrap();
  let c = rusqlite::Connection::open(format!("{d}/bare.db")).unwrap();
  c.pragma_update(None,"journal_mode","WAL").unwrap(); c.pragma_update(None,"synchronous","NORMAL").unwrap();
  c.execute_batch("CREATE TABLE locks(name TEXT PRIMARY KEY, holder TEXT, expires INTEGER)").unwrap();
  let n=20000;
  for _ in 0..3 {
  let t=Instant::now();
  for _ in 0..n { 
    c.prepare_cached("BEGIN IMMEDIATE").unwrap().execute([]).unwrap();
    c.prepare_cached("INSERT INTO locks VALUES(?1,?2,?3)").unwrap().execute(("deploy","me",1)).unwrap();
    c.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
    c.prepare_cached("BEGIN IMMEDIATE").unwrap().execute([]).unwrap();
    c.prepare_cached("DELETE FROM locks WHERE name=?1").unwrap().execute(["deploy"]).unwrap();
    c.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
  }
  let bare=n as f64/t.elapsed().as_secs_f64();
  let cl = tenure::blocking::Client::open(&format!("sqlite:{d}/t.db")).unwrap();
  let t=Instant::now();
  for _ in 0..n { let g=cl.acquire("deploy").unwrap(); g.release().unwrap(); }
  let ours=n as f64/t.elapsed().as_secs_f64();
  println!("bare {bare:.0}/s ours {ours:.0}/s ratio {:.2}", ours/bare);
  }
}
