//! The MCP server is added once and removed without touching others.

use super::*;

const JSON: [McpFormat; 4] = [
    McpFormat::McpServers,
    McpFormat::TypedMcpServers,
    McpFormat::CursorMcpServers,
    McpFormat::Opencode,
];

#[test]
fn adding_twice_changes_nothing_and_removing_gives_the_same_bytes() {
    for format in JSON {
        for text in [
            "{}",
            "{\"mcpServers\": {}, \"mcp\": {}}",
            "{\n  \"mcpServers\": {\n    \"x\": { \"command\": \"x\" }\n  }\n}\n",
            "{ \"mcp\": { \"servers\": { \"x\": { \"type\": \"local\" } } } }",
        ] {
            let with = format.with(Some(text)).expect("an object");
            assert_ne!(with, text);
            assert_eq!(format.with(Some(&with)).expect("an object"), with);
            assert!(!format.is_edited(&with));
            assert_eq!(format.without(&with).expect("an object").as_deref(), Some(text));
        }
        let created = format.with(None).expect("no file");
        assert_eq!(format.without(&created).expect("an object"), None);
    }
}

#[test]
fn a_server_that_its_user_configured_stays_as_it_is_until_it_is_removed() {
    let text = r#"{"mcpServers": {"tenure": {"command": "/opt/tenure", "args": ["mcp", "-v"]}}}"#;
    assert_eq!(McpFormat::McpServers.with(Some(text)).expect("an object"), text);
    assert!(McpFormat::McpServers.is_edited(text));
    let rest = McpFormat::McpServers.without(text).expect("an object");
    assert_eq!(rest.as_deref(), Some(r#"{"mcpServers": {}}"#));
}

#[test]
fn another_server_of_that_name_is_neither_replaced_nor_removed() {
    let text = r#"{"mcpServers": {"tenure": {"command": "other"}}}"#;
    assert_eq!(McpFormat::McpServers.with(Some(text)).expect_err("taken").line, 1);
    let rest = McpFormat::McpServers.without(text).expect("an object");
    assert_eq!(rest.as_deref(), Some(text));
}

#[test]
fn the_newer_table_of_opencode_is_used_if_it_is_there() {
    let with = McpFormat::Opencode.with(Some("{\"mcp\": {\"servers\": {}}}")).expect("an object");
    let value = json::value(&with).expect("an object");
    assert_eq!(value["mcp"]["servers"]["tenure"]["command"], json!(["tenure", "mcp"]));
}

#[test]
fn toml_is_added_at_the_end_and_removed_again() {
    let format = McpFormat::CodexToml;
    let texts = [
        "",
        "model = \"x\"",
        "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"o\" # why\n",
        "[a]\r\nb = 1\r\n",
    ];
    for text in texts {
        let with = format.with(Some(text)).expect("TOML");
        let table = parse_toml(&with).expect("TOML");
        assert_eq!(table["mcp_servers"]["tenure"]["command"].as_str(), Some("tenure"));
        assert_eq!(format.with(Some(&with)).expect("TOML"), with);
        assert_eq!(format.without(&with).expect("TOML").as_deref(), Some(text));
    }
    let created = format.with(None).expect("no file");
    assert_eq!(format.without(&created).expect("TOML"), None);
}

#[test]
fn toml_that_cannot_be_extended_is_refused_with_its_place() {
    let error = McpFormat::CodexToml.with(Some("a = 1\nmcp_servers = { b = {} }\n"));
    assert_eq!(error.expect_err("an inline table").line, 2);
    let error = McpFormat::CodexToml.with(Some("a = 1\nb = = 2\n")).expect_err("no TOML");
    assert_eq!((error.line, error.column), (2, 5));
    let own = "[mcp_servers.tenure]\ncommand = \"tenure\"\nargs = [\"mcp\", \"-v\"]\n";
    assert_eq!(McpFormat::CodexToml.with(Some(own)).expect("TOML"), own);
    assert_eq!(McpFormat::CodexToml.without(own).expect("TOML").as_deref(), Some(own));
}
