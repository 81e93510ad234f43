//! Alarms of the cluster. One that is full is read as before, and refuses all writes.

use etcd_client::MaintenanceClient;

/// What the member says is wrong. That it cannot be asked is told elsewhere.
pub(super) async fn told(client: &mut MaintenanceClient) -> Vec<String> {
    let Ok(status) = client.status().await else {
        return Vec::new();
    };
    let told = status.errors().iter().map(|error| {
        let alarm = error.trim();
        format!(
            "the cluster has an alarm ({alarm}): nothing can be reserved on it before that is over"
        )
    });
    told.collect()
}
