//! What becomes of a request.

use keywright_core::Cause;
use keywright_resp::command::{Command, Hello, KeywrightCommand, Refusal};
use keywright_resp::reply::Writer;
use keywright_resp::request::Request;
use keywright_store::Failure;

use crate::port::issue::{Found, Issued};
use crate::port::keys::PortKeys;
use crate::port::redis::client::Client;
use crate::port::redis::context::PortContext;
use crate::port::redis::held::{Answer, HeldReply};
use crate::port::redis::outcome::{Greeting, Outcome};
use crate::port::redis::output::Room;
use crate::port::redis::told::{AskedKeys, Form};
use crate::port::redis::{answer, cluster, login, manage, refused, tags};

/// Carries a request out; `room`: of replies. `unknown`: why nobody knows who the client is now, if that is so.
pub(super) fn carry_out(
    request: &Request<'_>,
    client: &mut Client,
    unknown: Option<&Failure>,
    (out, room): (&mut Vec<u8>, &mut Room),
    context: &PortContext,
) -> Outcome {
    let mut to = Writer::new(out, client.protocol());
    if is_http(request) {
        refused::write(
            &context.keys,
            Cause::PacketMalformed,
            "Protocol error: this is no server of HTTP",
            &mut to,
        );
        return Outcome::Stray;
    }
    let Some(command) = allowed(request, client, unknown, &mut to, context) else {
        return after_refusal(client);
    };
    let keys = &context.keys;
    match command {
        Command::Incr(name) => {
            return keys_of(name, (1, Form::Last), client, (&mut to, room), context);
        }
        Command::IncrBy(name, count) => {
            return keys_of(name, (count, Form::Last), client, (&mut to, room), context);
        }
        Command::Get(name) => return last_of(name, client, (&mut to, room), context),
        Command::Mget => return lasts_of(request, client, &mut to, context),
        Command::Ping(None) => to.simple("PONG"),
        Command::Ping(Some(sent)) | Command::Echo(sent) => to.bulk(sent),
        Command::Hello(asked) => return hello(&asked, client, &mut to, keys),
        Command::Auth(said) => return login::log_in(&said, Greeting::Ok, client, keys, &mut to),
        Command::Select | Command::Readonly => to.ok(),
        Command::Quit => {
            to.ok();
            return Outcome::Quit;
        }
        Command::Reset => {
            to.simple("RESET");
            client.reset(login::at_first(keys));
        }
        Command::Time => answer::time(&mut to),
        Command::Info => answer::info(keys, &context.status, &mut to),
        Command::Command(query) => answer::commands(query, request, &mut to),
        Command::Client(asked) => answer::client(asked, client, &mut to),
        Command::AclWhoami => to.bulk(client.who().name().as_bytes()),
        Command::ConfigGet => to.map(0),
        Command::Cluster(query) => cluster::answer(query, keys, &mut to),
        Command::Keywright(command) => return keywright(command, client, (&mut to, room), context),
    }
    Outcome::Answered
}

/// The command of a request, if its client may give it; otherwise it was answered why not.
fn allowed<'a>(
    request: &Request<'a>,
    client: &Client,
    unknown: Option<&Failure>,
    to: &mut Writer<'_>,
    context: &PortContext,
) -> Option<Command<'a>> {
    let command = match Command::parse(request) {
        Ok(command) if client.is_let_in() || is_for_strangers(&command) => command,
        // Whoever is not let in is told nothing else.
        Err(refusal) if client.is_let_in() || refusal == Refusal::Protocol => {
            refused::refuse_command(&context.keys, &refusal, to);
            return None;
        }
        Ok(_) | Err(_) => {
            let message = "Authentication required.";
            refused::write(&context.keys, Cause::PasswordMissing, message, to);
            return None;
        }
    };
    if let Some(failure) = unknown.filter(|_| !is_for_strangers(&command)) {
        refused::refuse(&context.keys, b"", failure, to);
        return None;
    }
    Some(command)
}

/// The last key of a name that was issued.
fn last_of(
    name: &[u8],
    client: &Client,
    (to, room): (&mut Writer<'_>, &mut Room),
    context: &PortContext,
) -> Outcome {
    let keys = &context.keys;
    match client.who().may_use(name) {
        Ok(()) if keys.cluster.is_some() => {
            return keys_of(name, (1, Form::Recent), client, (to, room), context);
        }
        Ok(()) => answer::last(name, keys, to),
        Err(failure) => refused::refuse(keys, name, &failure, to),
    }
    Outcome::Answered
}

/// The same of several names.
fn lasts_of(
    request: &Request<'_>,
    client: &Client,
    to: &mut Writer<'_>,
    context: &PortContext,
) -> Outcome {
    let keys = &context.keys;
    let mut names = request.arguments(1);
    let denial = names.find_map(|name| Some((name, client.who().may_use(name).err()?)));
    match denial {
        None if keys.cluster.is_some() => {
            let bytes_max = context.limits.output_bytes_max;
            return cluster::lasts(request, (keys, client), bytes_max, to);
        }
        None => answer::lasts(request, keys, to),
        Some((name, failure)) => refused::refuse(keys, name, &failure, to),
    }
    Outcome::Answered
}

fn keywright(
    command: KeywrightCommand<'_>,
    client: &Client,
    (to, room): (&mut Writer<'_>, &mut Room),
    context: &PortContext,
) -> Outcome {
    let (who, keys) = (client.who(), &context.keys);
    match command {
        KeywrightCommand::Next { name, count } => {
            let asked = count.map_or((1, Form::One), |count| (count, Form::List));
            return keys_of(name, asked, client, (to, room), context);
        }
        KeywrightCommand::Decode(id) => answer::decoded(id, keys, to),
        KeywrightCommand::Help => answer::help(to),
        KeywrightCommand::List => answer::list(&who.names(keys), to),
        KeywrightCommand::Stats => answer::stats(&who.names(keys), keys, to),
        KeywrightCommand::About(name) => match who.may_use(name) {
            Ok(()) => answer::about(name, keys, to),
            Err(failure) => refused::refuse(keys, name, &failure, to),
        },
        KeywrightCommand::Create { name, order } => {
            return tags::create((name, order), who, keys, to);
        }
        KeywrightCommand::Demote { group } => return tags::demote(group, who, keys, to),
        KeywrightCommand::Advance {
            name,
            above,
            use_up,
        } => return tags::advance((name, above, use_up), who, keys, to),
        KeywrightCommand::Alter { name, altered } => {
            return tags::alter((name, &altered), who, keys, to);
        }
        KeywrightCommand::Drop(name) => return tags::drop_tag(name, who, keys, to),
        KeywrightCommand::User(command) => {
            return manage::carry_out_user(command, who, keys, to);
        }
    }
    Outcome::Answered
}

/// Whether a request is the head of one in HTTP. A page in somebody's browser can send such to a loopback address, with lines behind it
/// that would be commands.
fn is_http(request: &Request<'_>) -> bool {
    let first = request.argument(0).unwrap_or_default();
    first.eq_ignore_ascii_case(b"POST") || first.eq_ignore_ascii_case(b"Host:")
}

/// Whether a command is for those who have not said who they are.
fn is_for_strangers(command: &Command<'_>) -> bool {
    matches!(
        command,
        Command::Hello(_) | Command::Auth(_) | Command::Quit | Command::Reset
    )
}

fn hello(asked: &Hello<'_>, client: &mut Client, to: &mut Writer<'_>, keys: &PortKeys) -> Outcome {
    let greeting = Greeting::of(asked);
    if let Some(said) = &asked.login {
        return login::log_in(said, greeting, client, keys, to);
    }
    if client.is_let_in() {
        greeting.write(client, keys, to);
        return Outcome::Answered;
    }
    refused::write(
        keys,
        Cause::PasswordMissing,
        "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to \
         authenticate the client and select the RESP protocol version at the same time",
        to,
    );
    after_refusal(client)
}

/// What becomes of a client that was refused something: one that has not said who it is may ask only so often.
fn after_refusal(client: &mut Client) -> Outcome {
    match !client.is_let_in() && client.was_refused() {
        true => Outcome::Stranger,
        false => Outcome::Answered,
    }
}

/// Keys, if they are there; else the request waits.
fn keys_of(
    name: &[u8],
    asked: (i64, Form),
    client: &Client,
    (to, room): (&mut Writer<'_>, &mut Room),
    context: &PortContext,
) -> Outcome {
    let keys = &context.keys;
    if let Err(failure) = client.who().may_use(name) {
        refused::refuse(keys, name, &failure, to);
        return Outcome::Answered;
    }
    let asked = AskedKeys::new(keys, name, asked, context.limits.output_bytes_max);
    if let Ok(asked) = &asked
        && room.puts_off(asked.listed_bytes())
    {
        return Outcome::PutOff;
    }
    let asked = asked.and_then(|asked| room.take(asked.listed_bytes()).map(|()| asked));
    match asked {
        Ok(asked) => {
            if let Some(moved) = context.moved(name)
                && asked.request.is_ordered()
            {
                moved.tell(to);
                return Outcome::Answered;
            }
            let found = match keys.cluster.is_some() {
                true => asked.request.try_issue(),
                false => asked
                    .request
                    .try_take()
                    .map(|keys| Issued::Keys(keys).into()),
            };
            let Some(Found {
                issued,
                unconfirmed,
            }) = found
            else {
                return Outcome::Keys(asked);
            };
            if let Some(unconfirmed) = unconfirmed {
                let reply = HeldReply::new(asked, Answer::Issued(issued), unconfirmed, client);
                return Outcome::Unconfirmed(reply);
            }
            return match asked.tell(issued, keys, to) {
                Ok(()) => Outcome::Issued(asked),
                Err(away) => away.into(),
            };
        }
        Err(failure) => refused::refuse(keys, name, &failure, to),
    }
    Outcome::Answered
}
