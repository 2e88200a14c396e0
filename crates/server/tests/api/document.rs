//! The description of the API.

use crate::kit::Server;

#[tokio::test]
async fn the_document_is_served() {
    let server = Server::new().await;
    let served = server.get("/v1/openapi.json").await.good();
    assert_eq!(served["openapi"], "3.1.0");
}
