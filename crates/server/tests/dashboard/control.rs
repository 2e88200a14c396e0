//! What a scenario asks this side to do: hold, wait, add, claim, finish, end the server.

use crate::page::Page;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::core::rules::tasks::{Finish, NewTask};
use tenure::core::{Mode, Proof, Resource};
use tenure::{
    Attempt, Binding, ClaimRequest, Claims, Client, Error, Guard, LeaseAttempt, Swarm, Wait, Work,
};
use tenure_server::dashboard::leading_page;
use tokio::net::TcpListener;
use tokio::sync::Notify;

#[derive(Clone)]
pub struct Control {
    client: Client,
    page: Page,
    port: u16,
    guards: Arc<Mutex<HashMap<String, Guard>>>,
    processes: Arc<Mutex<HashMap<String, Child>>>,
    /// Lets a worker go on with its task.
    proceed: Arc<Notify>,
}

impl Control {
    pub async fn start(client: Client, page: Page) -> Control {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (guards, processes, proceed) = (Arc::default(), Arc::default(), Arc::default());
        let control = Control { client, page, port, guards, processes, proceed };
        let router = Router::new().route("/{verb}", post(answer)).with_state(control.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        control
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    async fn act(&self, verb: &str, asked: &Value) -> Result<Value, Error> {
        match verb {
            "lease" => return self.lease(asked).await,
            "guard" => self.guard(asked).await?,
            "wait" => self.wait(asked)?,
            "release" => self.release(asked).await?,
            "kill" => self.kill(asked),
            "add" => self.add(asked).await?,
            "claim" => return self.claim(asked).await,
            "finish" => self.finish(asked).await?,
            "worker" => self.worker(asked)?,
            "proceed" => self.proceed.notify_one(),
            "recover" => drop(self.client.tasks().recover().await?),
            "gate" => self.page.set_gate(|gate| {
                gate.role = text(asked, "role").parse().expect("a role");
                gate.token = asked["token"].as_str().map(str::to_owned);
            }),
            "leading_page" => {
                return Ok(json!({ "page": leading_page(text(asked, "address")) }));
            }
            "stop" => self.page.stop(),
            "start" => self.page.start_again().await,
            other => panic!("no verb {other}"),
        }
        Ok(json!({}))
    }

    fn request(&self, asked: &Value) -> Result<tenure::Request, Error> {
        let client = self.client.with_label(text(asked, "as"))?;
        let mut request = client.request(text(asked, "resource"));
        if let Some(operation) = asked["operation"].as_str() {
            request = request.operation(operation);
        }
        if let Some(mode) = asked["mode"].as_str() {
            request = request.mode(mode.parse::<Mode>().expect("a mode"));
        }
        if let Some(ttl_ms) = asked["ttl_ms"].as_u64() {
            request = request.ttl(Duration::from_millis(ttl_ms));
        }
        if asked["process"].as_bool() == Some(true) {
            request = request.for_process(self.process(text(asked, "as")));
        }
        Ok(request)
    }

    /// A process that lives until it is killed, in the name of this label.
    fn process(&self, label: &str) -> u32 {
        let mut processes = self.processes.lock().unwrap();
        let start = || Command::new("sleep").arg("1000").spawn().expect("a process");
        processes.entry(label.to_owned()).or_insert_with(start).id()
    }

    async fn lease(&self, asked: &Value) -> Result<Value, Error> {
        match self.request(asked)?.wait(Wait::No).lease().await? {
            LeaseAttempt::Held(lease) => Ok(json!({ "token": lease.token })),
            LeaseAttempt::Busy(busy) => panic!("busy: {busy:?}"),
        }
    }

    async fn guard(&self, asked: &Value) -> Result<(), Error> {
        match self.request(asked)?.wait(Wait::No).hold().await? {
            Attempt::Held(guard) => self.keep(text(asked, "as"), guard),
            Attempt::Busy(busy) => panic!("busy: {busy:?}"),
        }
        Ok(())
    }

    fn keep(&self, label: &str, guard: Guard) {
        let resources: Vec<String> =
            guard.lease().resources.iter().map(Resource::to_string).collect();
        self.guards.lock().unwrap().insert(format!("{label} {}", resources.join(" ")), guard);
    }

    /// Takes a place in the queue, and in the end the resource.
    fn wait(&self, asked: &Value) -> Result<(), Error> {
        let (control, label) = (self.clone(), text(asked, "as").to_owned());
        let request = self.request(asked)?;
        tokio::spawn(async move {
            if let Ok(Attempt::Held(guard)) = request.hold().await {
                control.keep(&label, guard);
            }
        });
        Ok(())
    }

    async fn release(&self, asked: &Value) -> Result<(), Error> {
        let client = self.client.with_label(text(asked, "as"))?;
        let resource: Resource = text(asked, "resource").parse()?;
        let key = format!("{} {resource}", text(asked, "as"));
        let guard = self.guards.lock().unwrap().remove(&key);
        match guard {
            Some(guard) => drop(guard.release().await?),
            None => {
                let proof = Proof::Label(client.holder().label.clone());
                drop(client.release(proof, Some(&[resource])).await?);
            }
        }
        Ok(())
    }

    fn kill(&self, asked: &Value) {
        let child = self.processes.lock().unwrap().remove(text(asked, "as"));
        let mut child = child.expect("a process of this label");
        child.kill().and_then(|()| child.wait()).expect("it ends");
    }

    async fn add(&self, asked: &Value) -> Result<(), Error> {
        let tasks = asked["tasks"].as_array().expect("tasks").iter().map(new_task).collect();
        self.client.tasks().add(tasks).await?;
        Ok(())
    }

    async fn claim(&self, asked: &Value) -> Result<Value, Error> {
        let tie = match asked["process"].as_bool() {
            Some(true) => Binding::Process(self.process(text(asked, "as"))),
            _ => Binding::ThisProcess,
        };
        let request = ClaimRequest {
            task: asked["task"].as_str().map(|id| id.parse().expect("an id")),
            ttl: Duration::from_millis(asked["ttl_ms"].as_u64().unwrap_or(600_000)),
            section_ttl: Duration::from_secs(600),
            tie,
            ..ClaimRequest::default()
        };
        match self.client.with_label(text(asked, "as"))?.tasks().claim(&request).await? {
            Claims::Claimed { tasks, .. } => Ok(json!({ "task": tasks[0].task.id })),
            Claims::None(none) => panic!("no claim: {none:?}"),
        }
    }

    /// Starts a worker. It prints a line for each task, and another before it completes the task, which
    /// it does when it is told to proceed.
    fn worker(&self, asked: &Value) -> Result<(), Error> {
        let client = self.client.with_label(text(asked, "as"))?;
        let proceed = self.proceed.clone();
        let work = move |work: Arc<Work>| {
            let proceed = proceed.clone();
            async move {
                work.print(b"step one\n");
                proceed.notified().await;
                work.print(b"step two\n");
                Finish::Complete { result: None }
            }
        };
        let swarm = Swarm::new(&client, ClaimRequest::default()).forever();
        tokio::spawn(async move { swarm.run(work, |_| ()).await });
        Ok(())
    }

    async fn finish(&self, asked: &Value) -> Result<(), Error> {
        let client = self.client.with_label(text(asked, "as"))?;
        let finish = match text(asked, "how") {
            "complete" => Finish::Complete { result: None },
            "review" => Finish::Review { result: None },
            reason => Finish::Fail { reason: reason.to_owned(), retry: false },
        };
        let proof = Proof::Label(client.holder().label.clone());
        let task = text(asked, "task").parse()?;
        client.tasks().finish(&task, proof, None, None, finish).await?;
        Ok(())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // The last one but the one inside the server, which lives as long as the test.
        if Arc::strong_count(&self.processes) <= 2 {
            for child in self.processes.lock().unwrap().values_mut() {
                let _ = child.kill().and_then(|()| child.wait());
            }
        }
    }
}

fn text<'a>(asked: &'a Value, name: &str) -> &'a str {
    asked[name].as_str().unwrap_or_else(|| panic!("{name} is missing in {asked}"))
}

fn new_task(asked: &Value) -> NewTask {
    let words = |name: &str| -> Vec<String> {
        serde_json::from_value(asked[name].clone()).unwrap_or_default()
    };
    let mut task = NewTask::new(text(asked, "id").parse().expect("an id"), text(asked, "title"));
    task.section = asked["section"].as_str().map(str::to_owned);
    task.labels = words("labels");
    task.depends_on = words("depends_on").iter().map(|id| id.parse().expect("an id")).collect();
    task.description = asked["description"].as_str().map(str::to_owned);
    task.priority = asked["priority"].as_u64().unwrap_or(50) as u8;
    task.error = asked["error"].as_str().map(str::to_owned);
    if let Some(status) = asked["status"].as_str() {
        task.status = status.parse().expect("a status");
    }
    task
}

async fn answer(
    State(control): State<Control>,
    Path(verb): Path<String>,
    Json(asked): Json<Value>,
) -> Result<Json<Value>, (StatusCode, String)> {
    let acted = control.act(&verb, &asked).await;
    acted.map(Json).map_err(|error| (StatusCode::CONFLICT, error.to_string()))
}
