# Uses the page's model in the ways that are common, and prints the id of each row: `check.rb postgres|mariadb|mysql`.

require_relative "make"
require_relative "use"

SERVER = ARGV.fetch(0)

# Its table comes while the program runs.
class EventNote < ActiveRecord::Base
  belongs_to :event
end

class Event
  has_many :event_notes
end

def check(is_true, what)
  raise what unless is_true
end

def ids_by_name
  Event.connection.select_rows("SELECT name, id FROM events").to_h
end

def known(*events)
  ids = ids_by_name
  events.each { |event| check(event.id == ids.fetch(event.name), "#{event.name}: #{event.id}, #{ids[event.name]}") }
end

def create_in_other_ways
  saved = Event.new(name: "saved")
  saved.save!
  found = Event.find_or_create_by!(name: "found or created")
  known(saved, found)
  Event.create!(id: 9_000_000_000, name: "of its own")
  check(ids_by_name["of its own"] == 9_000_000_000, "the key of its own")
  parent = Event.create!(name: "with notes", event_notes: [EventNote.new, EventNote.new])
  known(parent)
  check(parent.event_notes.reload.size == 2, "notes")
  EventNote.pluck(:id).each { |id| puts "id #{id}" } unless SERVER == "postgres"
end

def create_many
  rows = (0...500).map { |n| { name: "many #{n}" } }
  result = Event.insert_all!(rows)
  check(result.rows.flatten == rows.map { |row| ids_by_name[row[:name]] }, "ids told") if SERVER == "postgres"
  before = ids_by_name["one"]
  Event.insert_all([{ name: "one" }, { name: "ignored" }])
  # On PostgreSQL this version has nothing to update but the unique column, and refuses.
  Event.upsert_all([{ name: "one" }, { name: "upserted" }]) unless SERVER == "postgres"
  ids = ids_by_name
  check(ids["one"] == before && ids["ignored"], "what was there")
end

def roll_back
  Event.transaction do
    Event.create!(name: "rolled back")
    raise ActiveRecord::Rollback
  end
  kept = Event.transaction do
    Event.transaction(requires_new: true) do
      Event.create!(name: "to the savepoint")
      raise ActiveRecord::Rollback
    end
    Event.create!(name: "kept")
  end
  known(kept)
  check((ids_by_name.keys & ["rolled back", "to the savepoint"]).empty?, "rolled back")
end

unless ActiveRecord::Base.connection.table_exists?(:event_notes)
  ActiveRecord::Migration.create_table(:event_notes) { |t| t.belongs_to :event }
end
check(Event.where(name: %w[one two three]).count == 3, "what the page inserts")
create_in_other_ways
create_many
roll_back
ids_by_name.each_value { |id| puts "id #{id}" unless id == 9_000_000_000 }
