//! Where a program is to listen.

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, assert_has, make_store,
};

/// It may be there where the program is to run, so nothing else is wrong.
pub(crate) fn a_place_where_no_socket_can_be_is_told(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_placed", &[])?;
    let bind = "unix:/dev/null/socket";
    let config = ProxyConfig {
        more: format!(
            "[[listener]]\nprotocol = \"redis\"\nbind = \"{bind}\"\nkeys = {{ tokens = \"uuid_v7\" }}\n"
        ),
        ..ProxyConfig::before(&server, &store)
    };
    let said = ProxyProcess::said(&config, &["check"])?;
    let warning = format!("warning: listening on {bind}: ");
    assert_has(
        &said,
        &[
            &warning,
            "(is its directory there?); run does not start on this machine",
            "ready to run, but not on this machine",
        ],
    );
    let strict = ProxyProcess::command(&config, &["check", "--strict"])?;
    assert!(!strict.status.success(), "{strict:?}");
    Ok(())
}
